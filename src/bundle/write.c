/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the JSON text of a bundle. The caller's texts have to be UTF-8; the reader refuses others.
 */
#include <inttypes.h>

#include "vethguard/bundle/signed_bundle.h"

static int put_string(struct buf *out, struct slice text)
{
	int rc = buf_append(out, "\"", 1);

	rc = rc ? rc : json_escape(out, text);
	return rc ? rc : buf_append(out, "\"", 1);
}

static int put_files(const struct signed_bundle_draft *d, struct buf *out)
{
	int rc = buf_printf(out, ",\n \"files\": {");

	for (size_t i = 0; !rc && i < d->file_count; i++) {
		rc = buf_printf(out, "%s", i ? ",\n  " : "\n  ");
		rc = rc ? rc : put_string(out, d->files[i].name);
		rc = rc ? rc : buf_append(out, ": ", 2);
		rc = rc ? rc : put_string(out, d->files[i].text);
	}
	return rc ? rc : buf_append(out, "}", 1);
}

static int put_token(struct buf *out, const struct signed_bundle_token *t)
{
	int rc = buf_printf(out, "{\"signer\": ");

	rc = rc ? rc : put_string(out, t->signer);
	rc = rc ? rc : buf_printf(out, ", \"id\": ");
	rc = rc ? rc : put_string(out, t->id);
	return rc ? rc : buf_append(out, "}", 1);
}

static int put_revoked(const struct signed_bundle_draft *d, struct buf *out)
{
	int rc = buf_printf(out, ",\n \"revoked\": {\"sessions\": [");

	for (size_t i = 0; !rc && i < d->session_count; i++) {
		rc = buf_printf(out, "%s", i ? ", " : "");
		rc = rc ? rc : put_string(out, d->sessions[i]);
	}
	rc = rc ? rc : buf_printf(out, "],\n  \"tokens\": [");
	for (size_t i = 0; !rc && i < d->token_count; i++) {
		rc = buf_printf(out, "%s", i ? ",\n   " : "");
		rc = rc ? rc : put_token(out, &d->tokens[i]);
	}
	return rc ? rc : buf_append(out, "]}", 2);
}

int signed_bundle_write(const struct signed_bundle_draft *d, struct buf *out)
{
	int rc = buf_printf(out, "{\"name\": ");

	rc = rc ? rc : put_string(out, d->name);
	rc = rc ? rc : buf_printf(out, ", \"serial\": %" PRIu64, d->serial);
	if (!rc && d->expires_s)
		rc = buf_printf(out, ", \"expires\": %" PRId64, d->expires_s);
	if (!rc && d->file_count)
		rc = put_files(d, out);
	if (!rc && (d->session_count || d->token_count))
		rc = put_revoked(d, out);
	return rc ? rc : buf_append(out, "}\n", 2);
}
