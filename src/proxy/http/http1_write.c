/* SPDX-License-Identifier: Apache-2.0 */
/* Writes HTTP/1.1 heads from structs: start line, fields that were not dropped, new framing. */
#include <errno.h>
#include <stdio.h>

#include "proxy/http/http1.h"

/* Appends several slices with one bounds check. */
static int put(struct buf *out, const struct slice *parts, size_t count)
{
	size_t n = 0;
	uint8_t *p;

	for (size_t i = 0; i < count; i++)
		n += parts[i].n;
	p = buf_reserve(out, n);
	if (!p)
		return -ENOBUFS;
	for (size_t i = 0; i < count; i++) {
		if (parts[i].n)
			memcpy(p, parts[i].p, parts[i].n);
		p += parts[i].n;
	}
	buf_commit(out, n);
	return 0;
}

#define PUT(out, ...)                                   \
	put((out), (const struct slice[]){__VA_ARGS__}, \
	        sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice))

/* head: the request that the fields belong to, whose injected fields replace some of them; or NULL.
 */
static int put_fields(
        struct buf *out, const struct http_fields *fields, const struct outgoing *head)
{
	int rc = 0;

	for (size_t i = 0; i < fields->count && rc == 0; i++) {
		const struct http_field *f = &fields->items[i];

		if (!f->dropped && !(head && http_is_replaced(head, f)))
			rc = PUT(out, f->name, SLICE(": "), f->value, SLICE("\r\n"));
	}
	return rc;
}

static int put_framing(struct buf *out, enum http_body body, uint64_t length)
{
	char digits[24];

	if (body == HTTP_BODY_LENGTH)
		return PUT(out, SLICE("content-length: "), http_decimal(length, digits),
		        SLICE("\r\n"));
	if (body == HTTP_BODY_CHUNKED)
		return PUT(out, SLICE("transfer-encoding: chunked\r\n"));
	return 0;
}

int http1_write_request(struct buf *out, const struct outgoing *head)
{
	const struct http_request *r = head->request;
	char host[HTTP_AUTHORITY_MAX];
	int rc = PUT(out, r->method, SLICE(" "), http_outgoing_path(head),
	        head->has_query ? SLICE("?") : SLICE(""), head->has_query ? head->query : SLICE(""),
	        SLICE(" HTTP/1.1\r\nHost: "), http_authority_text(r, host), SLICE("\r\n"));

	if (rc == 0)
		rc = put_fields(out, &r->fields, head);
	if (rc == 0)
		rc = put_framing(out, r->body, r->content_length);
	if (rc == 0 && r->expects_continue)
		rc = PUT(out, SLICE("Expect: 100-continue\r\n"));
	if (rc == 0 && r->wants_websocket)
		rc = PUT(out, SLICE("Connection: upgrade\r\nUpgrade: websocket\r\n"));
	else if (rc == 0 && r->upgrade.n)
		rc = PUT(out, SLICE("Connection: upgrade\r\nUpgrade: "), r->upgrade, SLICE("\r\n"));
	for (size_t i = 0; rc == 0 && i < head->field_count; i++)
		rc = PUT(out, head->fields[i].name, SLICE(": "), head->fields[i].value,
		        SLICE("\r\n"));
	return rc ? rc : PUT(out, SLICE("\r\n"));
}

int http1_write_response(struct buf *out, const struct http_response *r, uint8_t client_version,
        bool keep_alive, struct slice upgrade)
{
	char status[24];
	int rc = PUT(out, SLICE("HTTP/1.1 "), http_decimal(r->status, status), SLICE(" "),
	        r->reason, SLICE("\r\n"));

	if (rc == 0)
		rc = put_fields(out, &r->fields, NULL);
	if (rc == 0)
		rc = put_framing(out, r->body, r->content_length);
	if (rc == 0 && upgrade.n)
		rc = PUT(out, SLICE("Connection: upgrade\r\nUpgrade: "), upgrade, SLICE("\r\n"));
	else if (rc == 0 && r->status / 100 != 1 && !keep_alive)
		rc = PUT(out, SLICE("Connection: close\r\n"));
	else if (rc == 0 && r->status / 100 != 1 && client_version < 11)
		rc = PUT(out, SLICE("Connection: keep-alive\r\n"));
	if (rc == 0)
		rc = PUT(out, SLICE("\r\n"));
	return rc;
}

size_t http1_chunk_head(char *out, size_t n)
{
	return (size_t)snprintf(out, 20, "%zx\r\n", n);
}
