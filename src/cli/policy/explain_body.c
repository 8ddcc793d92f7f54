/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the body of the request that `policy explain` is asked about, as the proxy would. */
#include "cli/policy/explain.h"

#include <errno.h>
#include <string.h>

#include "vethguard/git/body.h"

static bool complain(const char *file, const char *why)
{
	char shown[256];

	fprintf(stderr, "vethguard: error: --body %s: %s\n",
	        slice_escape(slice_from_string(file), shown, sizeof(shown)), why);
	return false;
}

static bool read_all(const char *file, FILE *in, struct buf *out)
{
	char piece[65536];
	size_t n;

	while ((n = fread(piece, 1, sizeof(piece), in)) > 0)
		if (buf_append(out, piece, n) < 0)
			return complain(file, "has more than 16 MiB, which no rule reads");
	return !ferror(in) || complain(file, "cannot be read");
}

bool explain_read_body(struct explain *x, const char *file)
{
	static const char larger[] = "the body is larger than inspect, so it is refused where a "
	                             "rule reads it";
	FILE *in = strcmp(file, "-") == 0 ? stdin : fopen(file, "rb");
	bool good;

	if (!in)
		return complain(file, strerror(errno));
	good = read_all(file, in, &x->body_bytes);
	if (in != stdin)
		fclose(in);
	if (!good || x->body_bytes.len == 0)
		return good;
	git_body_read(&x->body, x->request.fields, buf_slice(&x->body_bytes));
	if (x->body_bytes.len > policy_inspect(&x->loaded.policy)) {
		policy_body_fini(&x->body);
		x->body = (struct policy_body){.state = POLICY_BODY_READ, .fault = larger};
	}
	x->request.body = &x->body;
	return true;
}

void explain_free_body(struct explain *x)
{
	policy_body_fini(&x->body);
	buf_fini(&x->body_bytes);
}
