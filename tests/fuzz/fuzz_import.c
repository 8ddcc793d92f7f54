/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_import: the first byte chooses a format, the rest is a source. What is imported must be a
 * policy that loads, or have two rules that contradict each other; nothing that neither the source
 * nor a comment names is allowed.
 */
#include <errno.h>
#include <stdlib.h>

#include "vethguard/policy/import.h"
#include "vethguard/policy/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_made(void *context, const char *path, char **text, size_t *n)
{
	const struct buf *made = context;

	(void)path;
	*n = made->len;
	*text = malloc(*n + 1);
	if (!*text)
		return -ENOMEM;
	memcpy(*text, buf_slice(made).p, *n);
	(*text)[*n] = '\0';
	return 0;
}

static void load(struct buf *made)
{
	const struct policy_reader reader = {.context = made, .read = read_made};
	struct diag_list diags = {.count = 0};
	struct policy_request request = {
	        .scheme = POLICY_HTTPS, .host = SLICE("nobody-names-this.invalid"), .port = 443};
	struct policy_decision d;
	struct policy policy;
	uint8_t *image;
	size_t size;
	int rc = policy_load(&reader, "/made.yaml", NULL, &image, &size, &diags);

	if (rc == -ENOMEM)
		return;
	if (rc != 0) {
		/* The only fault that a source can bring in: two ways to treat TLS. */
		for (size_t i = 0; i < diags.count; i++)
			if (!strstr(diags.items[i].message, "tls: passthrough"))
				abort();
		return;
	}
	if (policy_open(&policy, image, size) != 0)
		abort();
	policy_decide(&policy, &request, &d);
	if (d.verdict == POLICY_ALLOW && !strstr((const char *)buf_slice(made).p, "invalid"))
		abort();
	free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct diag_list diags = {.count = 0};
	struct buf made;
	int rc;

	if (size == 0)
		return 0;
	buf_init(&made, POLICY_IMPORT_TEXT_MAX);
	rc = policy_import((enum policy_import_format)(data[0] % POLICY_IMPORT_COUNT), "source",
	        slice_of(data + 1, size - 1), &made, &diags);
	if (rc == -EINVAL && diags.count == 0)
		abort();
	if (rc == 0 && buf_append(&made, "\n", 2) == 0) {
		made.len--; /* the NUL is for strstr() */
		load(&made);
	}
	buf_fini(&made);
	return 0;
}
