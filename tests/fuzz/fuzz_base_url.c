/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as requests by base URLs on one connection. Beyond memory safety: what a base URL means
 * is a plain host and a path without dot segments; the head that goes on names that host in
 * its target and its Host; and where a body ends does not depend on how it is cut.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/wire/base_url.h"
#include "vethguard/wire/body_meter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static bool has(struct slice s, const char *bytes)
{
	for (size_t i = 0; i < s.n; i++)
		if (!s.p[i] || strchr(bytes, s.p[i]))
			return true;
	return false;
}

static void check_url(const struct base_url *url)
{
	require(url->token.n && url->token.n <= PROXY_PROOF_MAX && !has(url->token, "/%?#:;@\\ "));
	require(url->authority.n && !has(url->authority, "/%?#@\\[] "));
	require(url->path.n && url->path.p[0] == '/' && slice_find_byte(url->path, '#') < 0);
	require(!base_url_check_path(url->path));
}

/* Takes what off the beginning of *s. */
static void takes(struct slice *s, struct slice what)
{
	require(slice_starts_with(*s, what));
	*s = slice_of(s->p + what.n, s->n - what.n);
}

static void check_onward(
        const uint8_t *data, const struct proxy_head *head, const struct base_url *url)
{
	struct buf out;
	struct slice text;

	buf_init(&out, 4 * PROXY_HEAD_MAX);
	require(base_url_write(data, head, url, SLICE(""), &out) == 0);
	text = buf_slice(&out);
	require(slice_ends_with(text, SLICE("\r\n\r\n")));
	takes(&text, head->method);
	takes(&text, url->https ? SLICE(" https://") : SLICE(" http://"));
	takes(&text, url->authority);
	takes(&text, url->path);
	takes(&text, SLICE(" HTTP/1."));
	text = slice_of(text.p + 1, text.n - 1);
	takes(&text, SLICE("\r\nHost: "));
	takes(&text, url->authority);
	takes(&text, SLICE("\r\n"));
	buf_fini(&out);
}

/* Returns how many bytes the body has; *state is how it ends. */
static size_t measure(const struct proxy_head *head, const uint8_t *p, size_t n, size_t step,
        enum body_meter_state *state)
{
	struct body_meter m;
	size_t used = 0;

	body_meter_begin(&m, head);
	while (used < n && m.state != BODY_METER_DONE && m.state != BODY_METER_BAD)
		used += body_meter_take(&m, p + used, n - used < step ? n - used : step);
	*state = m.state;
	return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct base_url url;
	struct proxy_head head;
	size_t looked = 0;

	if (!base_url_parse(slice_of(data, size), &url))
		check_url(&url);
	while (proxy_head_parse(data, size, &looked, &head) == PROXY_HEAD_DONE) {
		enum body_meter_state whole, cut;
		size_t used = measure(&head, data + head.used, size - head.used, size, &whole);

		require(measure(&head, data + head.used, size - head.used, 1, &cut) == used);
		require(whole == cut);
		if (head.form == PROXY_FORM_ORIGIN && !base_url_parse(head.target, &url)) {
			check_url(&url);
			check_onward(data, &head, &url);
		}
		if (whole != BODY_METER_DONE)
			break;
		data += head.used + used;
		size -= head.used + used;
		looked = 0;
	}
	return 0;
}
