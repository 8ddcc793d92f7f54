/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client in the sandbox that speaks HTTP/2: nghttp2's client side over a scripted peer. What came
 * for each stream is kept; raw frames may be said beside it.
 */
#ifndef VETHGUARD_TESTS_UNIT_PROXY_HTTP2_PEER_H
#define VETHGUARD_TESTS_UNIT_PROXY_HTTP2_PEER_H

#include <nghttp2/nghttp2.h>

#include "fixture.h"

#define ANSWERS_MAX 512

struct answer {
	int32_t id;
	int status;        /* of the last head */
	char fields[4096]; /* "name: value\n" of heads and trailers in order; a trailer's after
	                      "--\n" */
	size_t head_bytes; /* of all their names and values */
	struct buf body;
	bool ended, closed;
	uint32_t code;
	size_t messages; /* DATA chunks */
};

struct h2 {
	struct peer *peer;
	nghttp2_session *session;
	struct answer *answers[ANSWERS_MAX];
	size_t count;
	bool goaway;
	uint32_t goaway_code;
	int32_t settings[16];
};

/* A request's body: given by the test, piece by piece. */
struct upload {
	struct buf bytes;
	bool ended;
	const nghttp2_nv *trailers;
	size_t trailer_count;
};

static struct answer *answer(struct h2 *h, int32_t id)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->answers[i]->id == id)
			return h->answers[i];
	assert_true(h->count < ANSWERS_MAX);
	h->answers[h->count] = calloc(1, sizeof(**h->answers));
	h->answers[h->count]->id = id;
	buf_init(&h->answers[h->count]->body, 64u << 20);
	return h->answers[h->count++];
}

static int h2_on_header(nghttp2_session *s, const nghttp2_frame *frame, const uint8_t *name,
        size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *context)
{
	struct answer *a = answer(context, frame->hd.stream_id);
	size_t n = strlen(a->fields);

	(void)s, (void)flags;
	a->head_bytes += name_n + value_n;
	if (name_n == 7 && memcmp(name, ":status", 7) == 0)
		a->status = atoi((const char *)value);
	snprintf(a->fields + n, sizeof(a->fields) - n, "%.*s: %.*s\n", (int)name_n,
	        (const char *)name, (int)value_n, (const char *)value);
	return 0;
}

static int h2_on_begin(nghttp2_session *s, const nghttp2_frame *frame, void *context)
{
	struct answer *a = answer(context, frame->hd.stream_id);

	(void)s;
	if (frame->headers.cat == NGHTTP2_HCAT_HEADERS && a->status >= 200)
		strcat(a->fields, "--\n");
	return 0;
}

static int h2_on_data(
        nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *context)
{
	(void)s, (void)flags;
	assert_int_equal(buf_append(&answer(context, id)->body, p, n), 0);
	answer(context, id)->messages++;
	return 0;
}

static int h2_on_frame(nghttp2_session *s, const nghttp2_frame *frame, void *context)
{
	struct h2 *h = context;

	(void)s;
	if (frame->hd.stream_id && frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
	        (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS))
		answer(h, frame->hd.stream_id)->ended = true;
	if (frame->hd.type == NGHTTP2_GOAWAY) {
		h->goaway = true;
		h->goaway_code = frame->goaway.error_code;
	}
	if (frame->hd.type == NGHTTP2_SETTINGS)
		for (size_t i = 0; i < frame->settings.niv; i++)
			if (frame->settings.iv[i].settings_id < 16)
				h->settings[frame->settings.iv[i].settings_id] =
				        (int32_t)frame->settings.iv[i].value;
	return 0;
}

static int h2_on_close(nghttp2_session *s, int32_t id, uint32_t code, void *context)
{
	struct answer *a = answer(context, id);

	(void)s;
	a->closed = true;
	a->code = code;
	return 0;
}

/* Everything that is due in both directions. */
static void h2_run(struct h2 *h)
{
	const uint8_t *p;
	ssize_t n;

	if (h->peer->in.len) {
		n = nghttp2_session_mem_recv(h->session, buf_bytes(&h->peer->in), h->peer->in.len);
		assert_true(n >= 0);
		buf_consume(&h->peer->in, (size_t)n);
	}
	while ((n = nghttp2_session_mem_send(h->session, &p)) > 0)
		say_n(h->peer, p, (size_t)n);
}

#define H2_UNTIL(h, condition)                                                                  \
	do {                                                                                    \
		int64_t until_end = clock_monotonic_ms() + PATIENCE_MS;                         \
		while (h2_run(h), !(condition)) {                                               \
			if (clock_monotonic_ms() > until_end)                                   \
				fail_msg("%s:%d: in vain: %s", __FILE__, __LINE__, #condition); \
			pump(&w, 1);                                                            \
		}                                                                               \
	} while (0)

/* nghttp2's own checks of what is sent are off where a test breaks the rules. */
static struct h2 *h2_over(struct peer *peer, bool lawless)
{
	struct h2 *h = calloc(1, sizeof(*h));
	nghttp2_session_callbacks *cb;
	nghttp2_option *option;

	h->peer = peer;
	nghttp2_session_callbacks_new(&cb);
	nghttp2_session_callbacks_set_on_header_callback(cb, h2_on_header);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, h2_on_begin);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, h2_on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, h2_on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, h2_on_close);
	nghttp2_option_new(&option);
	nghttp2_option_set_no_http_messaging(option, lawless);
	nghttp2_option_set_max_send_header_block_length(option, 1u << 20);
	assert_int_equal(nghttp2_session_client_new2(&h->session, cb, h, option), 0);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(cb);
	nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, NULL, 0);
	return h;
}

static struct h2 *h2_client_of(unsigned name, const char *sni)
{
	struct peer *p = client(&w, name, NULL);

	start_tls_for(p, sni, "\x02h2\x08http/1.1");
	assert_false(p->failed);
	assert_true(slice_equals(tls_alpn(p->socket.tls), SLICE("h2")));
	return h2_over(p, true);
}

static inline struct h2 *h2_client(void)
{
	return h2_client_of(NAME_A, "a.test");
}

MAY_BE_UNUSED static void h2_hang_up(struct h2 *h, bool reset)
{
	hang_up(h->peer, reset);
	nghttp2_session_del(h->session);
	for (size_t i = 0; i < h->count; i++) {
		buf_fini(&h->answers[i]->body);
		free(h->answers[i]);
	}
	free(h);
}

static nghttp2_nv nv(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
	        strlen(value), NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

static ssize_t h2_read_upload(nghttp2_session *session, int32_t id, uint8_t *p, size_t n,
        uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct upload *u = source->ptr;
	size_t have = u->bytes.len < n ? u->bytes.len : n;

	(void)context;
	if (!have && !u->ended)
		return NGHTTP2_ERR_DEFERRED;
	if (have)
		memcpy(p, buf_bytes(&u->bytes), have);
	buf_consume(&u->bytes, have);
	if (u->ended && !u->bytes.len) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (u->trailers) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			nghttp2_submit_trailer(session, id, u->trailers, u->trailer_count);
		}
	}
	return (ssize_t)have;
}

/* A request with further fields; its stream. */
static int32_t h2_ask_with(struct h2 *h, const char *method, const char *authority,
        const char *path, const nghttp2_nv *more, size_t more_n, struct upload *upload)
{
	const nghttp2_data_provider body = {.source.ptr = upload, .read_callback = h2_read_upload};
	nghttp2_nv all[600] = {
	        nv(":method", method), nv(":scheme", h->peer->socket.tls ? "https" : "http")};
	char text[128];
	int32_t id;

	snprintf(text, sizeof(text), "%s", authority);
	if (!strchr(authority, ':'))
		snprintf(text, sizeof(text), "%s:%u", authority, w.port);
	all[2] = nv(":authority", text);
	all[3] = nv(":path", path);
	for (size_t i = 0; i < more_n; i++)
		all[4 + i] = more[i];
	id = nghttp2_submit_request(h->session, NULL, all, 4 + more_n, upload ? &body : NULL, NULL);
	assert_true(id > 0);
	h2_run(h);
	return id;
}

MAY_BE_UNUSED static int32_t h2_ask(struct h2 *h, const char *method, const char *path)
{
	return h2_ask_with(h, method, "a.test", path, NULL, 0, NULL);
}

MAY_BE_UNUSED static bool body_is(const struct answer *a, const char *text)
{
	return slice_equals(buf_slice(&a->body), slice_from_string(text));
}

#endif
