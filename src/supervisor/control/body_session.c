/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of calls about sessions and signed tokens. */
#include <string.h>

#include "supervisor/control/body_terms.h"

static bool read_from(const struct member *member, struct session_token *out, char *fault)
{
	char word[MEMBER_WORD_MAX];

	if (json_array_size(member->value) > MESSAGE_FROM_MAX)
		return member_fault(fault, "from: more than %d networks", MESSAGE_FROM_MAX);
	for (size_t i = 0; i < json_array_size(member->value); i++) {
		const char *text = json_string_value(json_array_get(member->value, i));
		struct slice network = slice_from_string(text ? text : "");

		if (!ip_prefix_parse(network, &out->from[out->from_count++]))
			return member_fault(fault,
			        "from: '%s' is not a network such as 203.0.113.0/24 or "
			        "2001:db8::/32, with no bits set behind the prefix",
			        slice_escape(network, word, sizeof(word)));
	}
	return true;
}

static bool read_hash(
        const struct member *member, uint8_t out[MESSAGE_TOKEN_HASH_BYTES], char *fault)
{
	const size_t digits = 2 * (size_t)MESSAGE_TOKEN_HASH_BYTES;
	const char *text = member_text(member);

	if (text && (strlen(text) != digits || strspn(text, "0123456789abcdef") != digits))
		return member_fault(fault, "certificate_sha256: must be 64 lowercase hex digits");
	for (size_t i = 0; text && i < MESSAGE_TOKEN_HASH_BYTES; i++)
		out[i] = (uint8_t)((unsigned)slice_hex_digit(text[2 * i]) << 4 |
		                   (unsigned)slice_hex_digit(text[2 * i + 1]));
	return true;
}

enum {
	SESSION_NAME,
	SESSION_POLICY,
	SESSION_OBSERVE,
	SESSION_LABELS,
	SESSION_VARS,
	SESSION_TTL,
	SESSION_FROM,
	SESSION_CERTIFICATE,
	SESSION_BY_ADDRESS,
	SESSION_CALLBACK,
	SESSION_MEMBERS
};

bool control_body_session(const json_t *body, struct control_attach *out, char *fault)
{
	struct member m[SESSION_MEMBERS] = {[SESSION_NAME] = {.name = "name"},
	        [SESSION_POLICY] = {.name = "policy"},
	        [SESSION_OBSERVE] = {.name = "observe", .type = MEMBER_BOOLEAN},
	        [SESSION_LABELS] = {.name = "labels", .type = MEMBER_OBJECT},
	        [SESSION_VARS] = {.name = "vars", .type = MEMBER_OBJECT},
	        [SESSION_TTL] = {.name = "ttl_s", .type = MEMBER_INTEGER},
	        [SESSION_FROM] = {.name = "from", .type = MEMBER_ARRAY},
	        [SESSION_CERTIFICATE] = {.name = "certificate_sha256"},
	        [SESSION_BY_ADDRESS] = {.name = "by_address", .type = MEMBER_BOOLEAN},
	        [SESSION_CALLBACK] = {.name = "callback", .type = MEMBER_BOOLEAN}};
	const struct body_terms terms = {&m[SESSION_NAME], &m[SESSION_POLICY], &m[SESSION_OBSERVE],
	        &m[SESSION_LABELS], &m[SESSION_VARS], &m[SESSION_TTL]};
	struct attach_request *request = &out->request;

	if (!body_is_there(body, out, fault) ||
	        !members_read(body, m, SESSION_MEMBERS, "", fault) ||
	        !body_terms_read(&terms, CONTROL_SESSION_TTL_S, out, fault) ||
	        !read_from(&m[SESSION_FROM], &request->session, fault) ||
	        !read_hash(&m[SESSION_CERTIFICATE], request->session.hash, fault))
		return false;
	request->kind = ATTACH_SESSION;
	request->session.by_certificate = m[SESSION_CERTIFICATE].value;
	request->session.by_address = json_is_true(m[SESSION_BY_ADDRESS].value);
	request->session.callback = json_is_true(m[SESSION_CALLBACK].value);
	return body_terms_check(request, fault);
}

bool control_body_extend(const json_t *body, uint32_t *ttl_s, char *fault)
{
	struct member m = {.name = "ttl_s", .type = MEMBER_INTEGER};
	uint64_t ttl = 0;

	if (body && !members_read(body, &m, 1, "", fault))
		return false;
	if (!m.value)
		return member_fault(
		        fault, "ttl_s: how many seconds is the session to last from now on?");
	if (!member_number(&m, 1, ATTACH_TTL_MAX_S, &ttl, fault))
		return false;
	*ttl_s = (uint32_t)ttl;
	return true;
}

bool control_body_certify(const json_t *body, uint8_t hash[MESSAGE_TOKEN_HASH_BYTES], char *fault)
{
	struct member m = {.name = "certificate_sha256"};

	if (body && !members_read(body, &m, 1, "", fault))
		return false;
	if (!m.value)
		return member_fault(fault,
		        "certificate_sha256: the hash of the certificate that is to prove the "
		        "session is needed");
	return read_hash(&m, hash, fault);
}

bool control_body_revoke_token(
        const json_t *body, const char **signer, const char **id, char *fault)
{
	enum { SIGNER, ID, COUNT };
	struct member m[COUNT] = {[SIGNER] = {.name = "signer"}, [ID] = {.name = "id"}};

	if (body && !members_read(body, m, COUNT, "", fault))
		return false;
	*signer = member_text(&m[SIGNER]);
	*id = member_text(&m[ID]);
	if (!*signer || !(*signer)[0])
		return member_fault(
		        fault, "signer: the name of a signer of the configuration is needed");
	return (*id && (*id)[0]) ||
	       member_fault(
	               fault, "id: the token's jti is needed, or the claim that names its session");
}
