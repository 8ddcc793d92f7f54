/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "fetch/https_fault.h"

#define REPEATED_MIN 12 /* bytes of a secret that are not shown in one piece */

/* What services say of an error: RFC 6749 section 5.2; Vault's list; GitHub's message; AWS's in
 * JSON and in XML; Google's and Azure's object. */
static struct slice reason_in(const struct https_answer *answer)
{
	static const char *const members[] = {
	        "error_description", "error", "message", "Message", "__type"};
	const char *text =
	        json_string_value(json_array_get(json_object_get(answer->json, "errors"), 0));
	const json_t *error = json_object_get(answer->json, "error");
	struct slice in_xml;

	if (json_is_object(error))
		text = json_string_value(json_object_get(error, "message"));
	for (size_t i = 0; !text && i < sizeof(members) / sizeof(members[0]); i++)
		text = json_string_value(json_object_get(answer->json, members[i]));
	if (!answer->json && https_xml_element(answer->text, "Message", &in_xml))
		return in_xml;
	return slice_from_string(text ? text : "");
}

/* AWS answers 400 when it wants fewer requests, and says so by a code. */
bool https_fault_is_throttled(const struct https_answer *answer)
{
	static const char *const codes[] = {
	        "Throttling", "ThrottlingException", "TooManyRequestsException"};
	struct slice code = SLICE("");
	const char *text = json_string_value(json_object_get(answer->json, "__type"));

	if (text)
		code = slice_from_string(strchr(text, '#') ? strchr(text, '#') + 1 : text);
	else if (!answer->json)
		https_xml_element(answer->text, "Code", &code);
	for (size_t i = 0; answer->status == 400 && i < sizeof(codes) / sizeof(codes[0]); i++)
		if (slice_equals(code, slice_from_string(codes[i])))
			return true;
	return answer->status == 429 || answer->status == 503;
}

/* --- what was sent is not shown --- */

/* How many bytes at the beginning of text are somewhere in sent, if they are min or more; else 0.
 */
static size_t repeats(struct slice text, struct slice sent, size_t min)
{
	size_t most = 0;

	for (size_t at = 0; min && at + min <= sent.n; at++) {
		size_t n = 0;

		while (n < text.n && at + n < sent.n && text.p[n] == sent.p[at + n])
			n++;
		if (n >= min && n > most)
			most = n;
	}
	return most;
}

static void repeats_more(struct slice text, struct slice sent, size_t *most)
{
	size_t n = repeats(text, sent, sent.n < REPEATED_MIN ? sent.n : REPEATED_MIN);

	if (n > *most)
		*most = n;
}

/* Same for everything that was sent: returns the longest. */
static size_t repeats_any(const struct https_sent *sent, struct slice text)
{
	const char *const *fields = sent->call->fields;
	size_t most = 0;

	for (size_t i = 0; i < sent->secret_count; i++)
		repeats_more(text, sent->secrets[i], &most);
	repeats_more(text, sent->call->body, &most);
	for (size_t i = 0; fields && fields[i]; i++)
		repeats_more(text, slice_from_string(fields[i]), &most);
	return most;
}

/* Copies text to out, with *** for what was sent and ? for control characters. The supervisor
 * escapes the rest. */
static void copy_plain(const struct https_sent *sent, struct slice text, char *out, size_t out_size)
{
	size_t n = 0;

	while (text.n && n + 4 < out_size) {
		size_t hidden = repeats_any(sent, text), taken = hidden ? hidden : 1;
		char c = *text.p;

		if (hidden) {
			memcpy(out + n, "***", 3);
			n += 3;
		} else {
			out[n++] = (uint8_t)c < ' ' || c == 0x7f || c == '\\' ? '?' : c;
		}
		text = slice_of(text.p + taken, text.n - taken);
	}
	out[n] = '\0';
}

void https_fault_explain(const struct https_answer *answer, const struct https_sent *sent,
        char fault[HTTPS_TEXT_MAX])
{
	char shown[256];

	copy_plain(sent, reason_in(answer), shown, sizeof(shown));
	if (answer->status / 100 == 3)
		snprintf(fault, HTTPS_TEXT_MAX,
		        "it answered %ld, a redirect, and none is followed: name the URL that it "
		        "leads to",
		        answer->status);
	else if (answer->status / 100 != 2)
		snprintf(fault, HTTPS_TEXT_MAX, "it answered %ld%s%s%s", answer->status,
		        *shown ? ": " : "", shown,
		        answer->has_retry_after ? " (and asks to wait before the next request)"
		                                : "");
	else
		snprintf(fault, HTTPS_TEXT_MAX, "what it answered is not JSON");
}
