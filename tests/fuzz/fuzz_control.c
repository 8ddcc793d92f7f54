/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of the control API, and what follows one as the body of an attach request. */
#include <jansson.h>
#include <stdlib.h>

#include "supervisor/control/body.h"
#include "vethguard/wire/control_http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_body(struct slice text)
{
	static struct control_attach attach;
	char fault[CONTROL_FAULT_MAX] = "";
	struct control_ca ca;
	const char *word;
	json_t *body = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);

	if (json_is_object(body)) {
		/* A refusal says why. */
		if (!control_body_attach(body, &attach, fault) && !fault[0])
			abort();
		(void)control_body_reload(body, &word, fault);
		(void)control_body_pause(body, &word, fault);
		(void)control_body_ca_csr(body, &ca, fault);
		(void)control_body_ca_rotate(body, &ca, fault);
		if (control_body_ca_install(body, &ca, fault) && !ca.certificate[0])
			abort();
		(void)control_body_empty(body, fault);
	}
	json_decref(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = slice_of(data, size);
	struct control_head head;

	if (control_head_request(bytes, &head) == CONTROL_HEAD_WHOLE) {
		if (head.size > size || head.target.n > CONTROL_TARGET_MAX)
			abort();
		read_body(slice_of(bytes.p + head.size, size - head.size));
	}
	if (control_head_response(bytes, &head) == CONTROL_HEAD_WHOLE && head.size > size)
		abort();
	return 0;
}
