/* SPDX-License-Identifier: Apache-2.0 */
/* A refused client of gRPC or gRPC-Web reads no body, only a status and a message in fields. */
#include "proxy/deny/deny.h"

#define WEB "application/grpc-web"

static struct slice type_of(const struct exchange *ex)
{
	const struct http_field *type = http_find(&ex->request.fields, HTTP_CONTENT_TYPE);

	return type ? type->value : SLICE("");
}

bool exchange_is_grpc(const struct exchange *ex)
{
	return ex->client_version == 20 &&
	       slice_starts_with(type_of(ex), SLICE("application/grpc"));
}

bool deny_grpc_reads(const struct exchange *ex)
{
	if (message_form_is_asked(ex->client->form)) /* status 200 would allow it */
		return false;
	return exchange_is_grpc(ex) || slice_starts_with(type_of(ex), SLICE(WEB));
}

/* The answer's content type: a gRPC-Web client insists on its own. */
static struct slice answer_type(const struct exchange *ex)
{
	if (slice_starts_with(type_of(ex), SLICE(WEB "-text")))
		return SLICE(WEB "-text");
	return slice_starts_with(type_of(ex), SLICE(WEB)) ? SLICE(WEB) : SLICE("application/grpc");
}

/* See https://grpc.io/docs/guides/status-codes/. No client retries PERMISSION_DENIED. */
static const char *grpc_status(enum event_cause cause)
{
	switch (cause) {
	case EVENT_CAUSE_POLICY:
	case EVENT_CAUSE_POLICY_CHANGED:
	case EVENT_CAUSE_BINDING:
	case EVENT_CAUSE_ADDRESS:
	case EVENT_CAUSE_ASK:
		return "7";
	case EVENT_CAUSE_POLICY_LIMIT:
		return "8"; /* RESOURCE_EXHAUSTED */
	case EVENT_CAUSE_CLIENT:
	case EVENT_CAUSE_UNREADABLE:
		return "13"; /* INTERNAL */
	default:
		return "14"; /* UNAVAILABLE */
	}
}

/* Percent-encodes a message as gRPC's protocol over HTTP/2 requires. */
static void put_encoded(struct buf *out, struct slice text)
{
	size_t n = text.n < DENY_SHOWN_MAX ? text.n : DENY_SHOWN_MAX;

	for (size_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)text.p[i];

		if (c >= 0x20 && c <= 0x7e && c != '%')
			buf_append(out, &c, 1);
		else
			buf_printf(out, "%%%02X", c);
	}
}

void deny_put_grpc(const struct exchange *ex, struct http_response *r, struct buf *text)
{
	struct buf plain;

	buf_init(&plain, DENY_TEXT_ROOM);
	deny_put_message(ex, &plain);
	put_encoded(text, buf_slice(&plain));
	buf_fini(&plain);
	r->status = 200;
	r->body = ex->client_version == 20 ? HTTP_BODY_NONE : HTTP_BODY_LENGTH;
	r->content_length = 0;
	r->fields.count = 0;
	http_add(&r->fields, SLICE("content-type"), answer_type(ex));
	http_add(&r->fields, SLICE("x-vethguard"), SLICE("denied"));
	http_add(&r->fields, SLICE("grpc-status"), slice_from_string(grpc_status(ex->cause)));
	http_add(&r->fields, SLICE("grpc-message"), buf_slice(text));
}
