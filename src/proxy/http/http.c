/* SPDX-License-Identifier: Apache-2.0 */
/* Heads as structs: names, lists, and the fields that may not travel from one connection to
 * another. */
#include "proxy/http/http.h"

#define NAME(id, text) [id] = {(text), sizeof(text) - 1}
static const struct slice http_field_names[] = {
        NAME(HTTP_OTHER, ""),
        NAME(HTTP_ACCEPT_ENCODING, "accept-encoding"),
        NAME(HTTP_AUTHORIZATION, "authorization"),
        NAME(HTTP_CONNECTION, "connection"),
        NAME(HTTP_CONTENT_ENCODING, "content-encoding"),
        NAME(HTTP_CONTENT_LENGTH, "content-length"),
        NAME(HTTP_CONTENT_TYPE, "content-type"),
        NAME(HTTP_EXPECT, "expect"),
        NAME(HTTP_HOST, "host"),
        NAME(HTTP_KEEP_ALIVE, "keep-alive"),
        NAME(HTTP_PROXY_AUTHENTICATE, "proxy-authenticate"),
        NAME(HTTP_PROXY_AUTHORIZATION, "proxy-authorization"),
        NAME(HTTP_PROXY_CONNECTION, "proxy-connection"),
        NAME(HTTP_SEC_WEBSOCKET_EXTENSIONS, "sec-websocket-extensions"),
        NAME(HTTP_TE, "te"),
        NAME(HTTP_TRAILER, "trailer"),
        NAME(HTTP_TRANSFER_ENCODING, "transfer-encoding"),
        NAME(HTTP_UPGRADE, "upgrade"),
        NAME(HTTP_USER_AGENT, "user-agent"),
};
_Static_assert(sizeof(http_field_names) / sizeof(*http_field_names) == HTTP_NAME_COUNT,
        "one name per enum http_name");

/* Fields that end at this hop and are never forwarded as they came. */
static const bool hop_by_hop[HTTP_NAME_COUNT] = {
        [HTTP_CONNECTION] = true,
        [HTTP_CONTENT_LENGTH] = true,
        [HTTP_EXPECT] = true,
        [HTTP_HOST] = true,
        [HTTP_KEEP_ALIVE] = true,
        [HTTP_PROXY_AUTHENTICATE] = true,
        [HTTP_PROXY_AUTHORIZATION] = true,
        [HTTP_PROXY_CONNECTION] = true,
        [HTTP_TE] = true,
        [HTTP_TRANSFER_ENCODING] = true,
        [HTTP_UPGRADE] = true,
};

enum http_name http_name_of(struct slice name)
{
	/* Length and first letter rule out nearly all names. */
	for (size_t i = 1; i < HTTP_NAME_COUNT; i++)
		if (http_field_names[i].n == name.n &&
		        (http_field_names[i].p[0] | 0x20) == (name.p[0] | 0x20) &&
		        slice_equals_ignoring_case(http_field_names[i], name))
			return (enum http_name)i;
	return HTTP_OTHER;
}

const struct http_field *http_find(const struct http_fields *fields, enum http_name known)
{
	for (size_t i = 0; i < fields->count; i++)
		if (fields->items[i].known == known && !fields->items[i].dropped)
			return &fields->items[i];
	return NULL;
}

bool http_list_next(struct slice *rest, struct slice *item)
{
	while (rest->n) {
		ptrdiff_t comma = slice_find_byte(*rest, ',');
		size_t n = comma < 0 ? rest->n : (size_t)comma;

		*item = slice_trim(slice_of(rest->p, n));
		n += comma >= 0;
		*rest = slice_of(rest->p + n, rest->n - n);
		if (item->n)
			return true;
	}
	return false;
}

bool http_list_has(struct slice list, struct slice token)
{
	struct slice item;

	while (http_list_next(&list, &item))
		if (slice_equals_ignoring_case(item, token))
			return true;
	return false;
}

static char as_server_reads(char c)
{
	if (c == '_')
		return '-';
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

bool http_names_alike(struct slice a, struct slice b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (as_server_reads(a.p[i]) != as_server_reads(b.p[i]))
			return false;
	return true;
}

bool http_resembles_framing(const struct http_field *f)
{
	return f->known == HTTP_OTHER &&
	       (http_names_alike(f->name, SLICE("content-length")) ||
	               http_names_alike(f->name, SLICE("transfer-encoding")));
}

void http_drop(struct http_fields *fields, struct slice name)
{
	for (size_t i = 0; i < fields->count; i++)
		if (http_names_alike(fields->items[i].name, name))
			fields->items[i].dropped = true;
}

static void drop_each_of(struct http_fields *fields, struct slice list)
{
	struct slice name;

	while (http_list_next(&list, &name))
		http_drop(fields, name);
}

void http_drop_hop_by_hop(struct http_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++) {
		if (fields->items[i].known == HTTP_CONNECTION)
			drop_each_of(fields, fields->items[i].value);
		if (hop_by_hop[fields->items[i].known])
			fields->items[i].dropped = true;
	}
}

bool http_is_replaced(const struct outgoing *head, const struct http_field *field)
{
	for (size_t i = 0; i < head->field_count; i++)
		if (http_names_alike(field->name, head->fields[i].name))
			return true;
	return false;
}

bool http_add(struct http_fields *fields, struct slice name, struct slice value)
{
	if (fields->count == HTTP_FIELDS_MAX)
		return false;
	fields->items[fields->count++] =
	        (struct http_field){.name = name, .value = value, .known = http_name_of(name)};
	return true;
}

void http_trailers_init(struct http_trailers *t)
{
	buf_init(&t->lines, HTTP_TRAILER_BYTES_MAX);
	t->count = 0;
}

void http_trailers_free(struct http_trailers *t)
{
	buf_fini(&t->lines);
}

bool http_trailers_add(struct http_trailers *t, struct slice name, struct slice value)
{
	return t->count++ < HTTP_TRAILERS_MAX && buf_append_slice(&t->lines, name) == 0 &&
	       buf_append_slice(&t->lines, SLICE(": ")) == 0 &&
	       buf_append_slice(&t->lines, value) == 0 &&
	       buf_append_slice(&t->lines, SLICE("\r\n")) == 0;
}

bool http_is_tchar(uint8_t c)
{
	return slice_token_length(slice_of(&c, 1)) == 1;
}

struct slice http_reason(uint16_t status)
{
	switch (status) {
	case 100:
		return SLICE("Continue");
	case 102:
		return SLICE("Processing");
	case 103:
		return SLICE("Early Hints");
	case 200:
		return SLICE("OK");
	case 400:
		return SLICE("Bad Request");
	case 403:
		return SLICE("Forbidden");
	case 405:
		return SLICE("Method Not Allowed");
	case 408:
		return SLICE("Request Timeout");
	case 413:
		return SLICE("Content Too Large");
	case 414:
		return SLICE("URI Too Long");
	case 417:
		return SLICE("Expectation Failed");
	case 421:
		return SLICE("Misdirected Request");
	case 431:
		return SLICE("Request Header Fields Too Large");
	case 501:
		return SLICE("Not Implemented");
	case 502:
		return SLICE("Bad Gateway");
	case 503:
		return SLICE("Service Unavailable");
	case 504:
		return SLICE("Gateway Timeout");
	case 505:
		return SLICE("HTTP Version Not Supported");
	default:
		return SLICE("");
	}
}

struct slice http_decimal(uint64_t v, char digits[24])
{
	char *p = digits + 24;

	do
		*--p = (char)('0' + v % 10);
	while ((v /= 10) != 0);
	return slice_of(p, (size_t)(digits + 24 - p));
}
