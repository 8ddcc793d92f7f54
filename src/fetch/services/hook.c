/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells endpoints of the operator what waits for a person. If the configuration has a key, the
 * request is signed: the field X-Vethguard-Signature is "v1=" and, in hex digits, the HMAC-SHA-256
 * of the time in X-Vethguard-Timestamp, a dot and the body. A receiver compares the time with its
 * own clock, so that nobody can send an old request again.
 *
 * The answer of a webhook does not count; the answer of a decider is its decision.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fetch/services/services.h"
#include "vethguard/policy/decision.h"
#include "vethguard/sign/hmac.h"

static struct hmac hmac;

int hook_prepare(void)
{
	return hmac_init(&hmac);
}

/* --- the request --- */

/* Sends the body, signed if there is a key. */
static bool tell(const struct fetch_request *request, struct https *https, struct slice *answer,
        char fault[HTTPS_TEXT_MAX])
{
	const struct slice body = fetch_argument(request, ".body");
	const struct slice key = fetch_secret(request, "key");
	char url[HTTPS_URL_MAX], seconds[64], signature[64 + 2 * HMAC_BYTES];
	const char *fields[] = {"Content-Type: application/json", "Accept: application/json",
	        seconds, key.n ? signature : NULL, NULL};
	uint8_t mac[HMAC_BYTES];
	int n, at;

	n = snprintf(url, sizeof(url), "%.*s", SLICE_ARG(request->message.sites[0].url));
	if (n >= (int)sizeof(url)) {
		snprintf(fault, HTTPS_TEXT_MAX, "its URL is too long");
		return false;
	}
	snprintf(seconds, sizeof(seconds), "X-Vethguard-Timestamp: %lld", (long long)time(NULL));
	if (key.n) {
		const struct slice parts[] = {
		        slice_from_string(strchr(seconds, ' ') + 1), SLICE("."), body};

		if (hmac_sha256(&hmac, key, parts, 3, mac) != 0) {
			snprintf(fault, HTTPS_TEXT_MAX, "what is sent to it cannot be signed");
			return false;
		}
		at = snprintf(signature, sizeof(signature), "X-Vethguard-Signature: v1=");
		hmac_hex(mac, sizeof(mac), signature + at);
		signature[at + 2 * HMAC_BYTES] = 0;
	}
	return https_text(https,
	        &(struct https_call){.method = "POST", .url = url, .fields = fields, .body = body},
	        answer, fault);
}

static bool hand_over(
        const struct hook_answer *answer, struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	char text[HOOK_ANSWER_MAX + 1];
	size_t n = hook_answer_write(answer, text);

	if (buf_append(&out->value, text, n) == 0)
		return true;
	snprintf(fault, HTTPS_TEXT_MAX, "no memory");
	return false;
}

bool webhook_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	const struct hook_answer none = {.verdict = HOOK_NONE};
	struct slice answer;

	return tell(request, https, &answer, fault) && hand_over(&none, out, fault);
}

bool decider_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	struct hook_answer decided;
	struct slice answer;
	const char *why;

	if (!tell(request, https, &answer, fault))
		return false;
	why = policy_decision_read(answer, &decided);
	if (why) {
		snprintf(fault, HTTPS_TEXT_MAX, "%s", why);
		return false;
	}
	return hand_over(&decided, out, fault);
}
