/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of calls on the CA. */
#include <string.h>

#include "supervisor/control/members.h"

enum { CA_CERTIFICATE, CA_ROOT, CA_OVERLAP, CA_NAME, CA_MEMBERS };

/* Reads the members from first on, count of them. */
static bool read_ca(
        const json_t *body, size_t first, size_t count, struct control_ca *out, char *fault)
{
	struct member m[CA_MEMBERS] = {[CA_CERTIFICATE] = {.name = "certificate"},
	        [CA_ROOT] = {.name = "root"},
	        [CA_OVERLAP] = {.name = "overlap_s", .type = MEMBER_INTEGER},
	        [CA_NAME] = {.name = "name"}};
	const char **const texts[CA_MEMBERS] = {[CA_CERTIFICATE] = &out->certificate,
	        [CA_ROOT] = &out->root,
	        [CA_NAME] = &out->name};

	*out = (struct control_ca){.name = "", .certificate = "", .root = ""};
	if (body && !members_read(body, &m[first], count, "", fault))
		return false;
	for (size_t i = 0; i < CA_MEMBERS; i++)
		if (texts[i] && m[i].value)
			*texts[i] = member_text(&m[i]);
	if (strlen(out->name) > MESSAGE_NAME_MAX)
		return member_fault(fault, "name: longer than %d bytes", MESSAGE_NAME_MAX);
	return member_number(&m[CA_OVERLAP], 1, MESSAGE_CA_OVERLAP_MAX_S, &out->overlap_s, fault);
}

bool control_body_ca_csr(const json_t *body, struct control_ca *out, char *fault)
{
	return read_ca(body, CA_NAME, 1, out, fault);
}

bool control_body_ca_install(const json_t *body, struct control_ca *out, char *fault)
{
	if (!read_ca(body, CA_CERTIFICATE, CA_NAME - CA_CERTIFICATE, out, fault))
		return false;
	if (!out->certificate[0])
		return member_fault(
		        fault, "certificate: the PEM text of the certificate is needed");
	if (strlen(out->certificate) > MESSAGE_PAPERS_MAX || strlen(out->root) > MESSAGE_PAPERS_MAX)
		return member_fault(
		        fault, "certificate, root: more than %d bytes", MESSAGE_PAPERS_MAX);
	return true;
}

bool control_body_ca_rotate(const json_t *body, struct control_ca *out, char *fault)
{
	return read_ca(body, CA_OVERLAP, CA_MEMBERS - CA_OVERLAP, out, fault);
}
