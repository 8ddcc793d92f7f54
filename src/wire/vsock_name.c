/* SPDX-License-Identifier: Apache-2.0 */
/* A name has only one form, because the state, the log and the API compare it as text. */
#include "vethguard/wire/vsock_name.h"

#include <inttypes.h>
#include <stdio.h>

#define PREFIX "vsock:"
#define FORM "it has to be vsock:CID:PORT, with two decimal numbers"

bool vsock_name_is(struct slice text)
{
	return slice_starts_with(text, SLICE(PREFIX));
}

const char *vsock_name_objection(uint64_t cid, uint64_t port)
{
	if (cid == 0 || cid == VSOCK_CID_HOST || cid > VSOCK_NUMBER_MAX)
		return "the CID has to be one machine's: from 3 to 4294967294 (or 1, for programs "
		       "of "
		       "this machine)";
	if (port == 0 || port > VSOCK_NUMBER_MAX)
		return "the port has to be from 1 to 4294967294";
	return NULL;
}

/* Parses a number without leading zeros, so that two names of one place are the same text. */
static bool number(struct slice text, uint64_t *out)
{
	return slice_to_u64(text, UINT64_MAX, out) && (text.n == 1 || text.p[0] != '0');
}

const char *vsock_name_parse(struct slice text, struct vsock_name *out)
{
	const size_t prefix = sizeof(PREFIX) - 1;
	uint64_t cid, port;
	ptrdiff_t colon;
	const char *why;

	if (!vsock_name_is(text) || text.n >= VSOCK_NAME_MAX)
		return FORM;
	text = slice_of(text.p + prefix, text.n - prefix);
	colon = slice_find_byte(text, ':');
	if (colon < 0 || !number(slice_of(text.p, (size_t)colon), &cid) ||
	        !number(slice_of(text.p + colon + 1, text.n - (size_t)colon - 1), &port))
		return FORM;
	why = vsock_name_objection(cid, port);
	if (!why)
		*out = (struct vsock_name){(uint32_t)cid, (uint32_t)port};
	return why;
}

const char *vsock_name_format(const struct vsock_name *name, char out[VSOCK_NAME_MAX])
{
	snprintf(out, VSOCK_NAME_MAX, PREFIX "%" PRIu32 ":%" PRIu32, name->cid, name->port);
	return out;
}
