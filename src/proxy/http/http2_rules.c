/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: everything is computed from the heads of frames, which nghttp2 shows before
 * it processes them. Unused stream identifiers are known from the runs that were skipped, not from
 * a list of those that were used: a client that counts skips none, and late trailers for a stream
 * that was reset are not an error (RFC 9113 section 5.1).
 */
#include "proxy/http/http2_rules.h"

#define FRAME_BYTES_MAX 16384u /* SETTINGS_MAX_FRAME_SIZE, which is never raised here */
#define WINDOW_INITIAL 65535u  /* RFC 9113 section 6.9.2 */
#define WINDOW_MAX INT64_C(0x7fffffff)

void http2_rules_init(struct http2_rules *rules)
{
	*rules = (struct http2_rules){.initial_window = WINDOW_INITIAL};
}

const char *http2_rules_frame(const nghttp2_frame_hd *hd, uint32_t *code)
{
	if (hd->type != NGHTTP2_CONTINUATION || hd->length <= FRAME_BYTES_MAX)
		return NULL;
	*code = NGHTTP2_FRAME_SIZE_ERROR; /* section 4.2 */
	return "HTTP/2: a CONTINUATION frame that is too large";
}

static bool was_left_out(const struct http2_rules *rules, int32_t id)
{
	unsigned n = rules->gap_count < HTTP2_GAPS_MAX ? rules->gap_count : HTTP2_GAPS_MAX;

	for (unsigned i = 0; i < n; i++)
		if (id >= rules->gaps[i].first && id <= rules->gaps[i].last)
			return true;
	return false;
}

const char *http2_rules_stream(
        struct http2_rules *rules, const nghttp2_frame_hd *hd, uint32_t *code)
{
	int32_t id = hd->stream_id;
	int64_t next = rules->highest ? (int64_t)rules->highest + 2 : 1;

	if (hd->type != NGHTTP2_HEADERS || id % 2 == 0)
		return NULL;
	if (id <= rules->highest) {
		if (!was_left_out(rules, id))
			return NULL;
		*code = NGHTTP2_PROTOCOL_ERROR;
		return "HTTP/2: a stream identifier lower than one used before";
	}
	if (id > next)
		rules->gaps[rules->gap_count++ % HTTP2_GAPS_MAX] =
		        (struct http2_gap){(int32_t)next, id - 2};
	rules->highest = id;
	return NULL;
}

void http2_rules_settings_begin(struct http2_rules *rules)
{
	rules->widest = 0;
}

void http2_rules_widen(struct http2_rules *rules, nghttp2_session *session, int32_t id)
{
	int32_t window = nghttp2_session_get_stream_remote_window_size(session, id);

	if (window > rules->widest)
		rules->widest = window;
}

const char *http2_rules_settings(
        struct http2_rules *rules, const nghttp2_settings *settings, uint32_t *code)
{
	int64_t before = rules->initial_window;

	for (size_t i = 0; i < settings->niv; i++)
		if (settings->iv[i].settings_id == NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE)
			rules->initial_window = settings->iv[i].value;
	if (rules->widest + (int64_t)rules->initial_window - before <= WINDOW_MAX)
		return NULL;
	*code = NGHTTP2_FLOW_CONTROL_ERROR;
	return "HTTP/2: settings that raise a window beyond its bound";
}
