/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_proposal: any bytes as a rule that a sandbox proposes. A proposal that is taken is taken
 * again from its texts. The policy written from it either loads, with one allow rule and nothing
 * else in it, or is refused by the loader.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/base/buf.h"
#include "vethguard/policy/load.h"
#include "vethguard/policy/proposal.h"
#include "vethguard/policy/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

static int read_text(void *context, const char *path, char **text, size_t *n)
{
	struct buf *written = context;

	(void)path;
	*n = written->len;
	*text = strndup((const char *)buf_bytes(written), written->len);
	return *text ? 0 : -ENOMEM;
}

static void load(struct buf *text)
{
	const struct policy_reader reader = {text, read_text, NULL};
	struct diag_list diags = {.count = 0};
	struct policy_rule_words words;
	struct policy policy;
	uint8_t *image;
	size_t n;

	if (policy_load(&reader, "/p.yaml", NULL, &image, &n, &diags) != 0) {
		must(diags.count > 0);
		return;
	}
	must(policy_open(&policy, image, n) == 0 && policy_rule_count(&policy) == 1);
	must(policy_rule_words(&policy, 0, &words) && words.kind == POLICY_RULE_ALLOW);
	must(!words.credential && !words.passthrough && !words.any_method && !words.any_path);
	must(policy_credential_count(&policy) == 0 && policy_mode(&policy) == POLICY_ENFORCE);
	must(policy_udp_ports(&policy, NULL, 0) == 0);
	free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy_proposal p, again;
	const char *fault = NULL;
	struct buf text;

	if (policy_proposal_read(&p, slice_of(data, size), &fault) != 0) {
		must(fault != NULL);
		return 0;
	}
	must(policy_proposal_take(&again, slice_from_string(p.to), slice_from_string(p.methods),
	        slice_from_string(p.paths), slice_from_string(p.reason)));
	must(memcmp(&p, &again, sizeof(p)) == 0);
	buf_init(&text, 1u << 16);
	must(policy_proposal_write(&p, 1, &text) == 0);
	load(&text);
	buf_fini(&text);
	return 0;
}
