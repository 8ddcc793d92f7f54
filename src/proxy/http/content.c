/* SPDX-License-Identifier: Apache-2.0 */
/* Content codings, and the fields that become untrue when vethguard decompresses content. */
#include "proxy/http/content.h"

#include <errno.h>
#include <stdlib.h>

static enum content_coding coding_named(struct slice name)
{
	static const struct {
		struct slice name;
		enum content_coding coding;
	} names[] = {{{"gzip", 4}, CONTENT_GZIP}, {{"x-gzip", 6}, CONTENT_GZIP},
	        {{"deflate", 7}, CONTENT_DEFLATE}, {{"br", 2}, CONTENT_BROTLI},
	        {{"zstd", 4}, CONTENT_ZSTD}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (slice_equals_ignoring_case(name, names[i].name))
			return names[i].coding;
	return CONTENT_OTHER;
}

struct slice content_type_of(const struct http_fields *fields)
{
	struct slice type = SLICE("");
	unsigned count = 0;

	for (size_t i = 0; i < fields->count; i++) {
		const struct slice value = fields->items[i].value;
		const ptrdiff_t semicolon = slice_find_byte(value, ';');

		if (!http_names_alike(fields->items[i].name, SLICE("content-type")))
			continue;
		type = slice_trim(slice_of(value.p, semicolon < 0 ? value.n : (size_t)semicolon));
		count++;
	}
	return count == 1 ? type : SLICE("");
}

enum content_coding content_coding_of(const struct http_fields *fields)
{
	enum content_coding coding = CONTENT_PLAIN;

	for (size_t i = 0; i < fields->count; i++) {
		struct slice value = fields->items[i].value;

		if (!http_names_alike(fields->items[i].name, SLICE("content-encoding")) ||
		        value.n == 0 || slice_equals_ignoring_case(value, SLICE("identity")))
			continue;
		if (coding != CONTENT_PLAIN)
			return CONTENT_OTHER; /* one coding inside of another */
		coding = coding_named(value);
	}
	return coding;
}

/* gRPC and the Connect protocol compress each message by itself, which no content coding shows. */
bool content_has_coded_messages(const struct http_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++) {
		const struct http_field *f = &fields->items[i];

		if ((slice_equals_ignoring_case(f->name, SLICE("grpc-encoding")) ||
		            slice_equals_ignoring_case(
		                    f->name, SLICE("connect-content-encoding"))) &&
		        f->value.n && !slice_equals_ignoring_case(f->value, SLICE("identity")))
			return true;
	}
	return false;
}

/* --- lists --- */

/* The next element of a comma-separated list. False: there is none. */
static bool next_element(struct slice *list, struct slice *element)
{
	ptrdiff_t comma = slice_find_byte(*list, ',');
	size_t n = comma < 0 ? list->n : (size_t)comma;

	if (!list->n)
		return false;
	*element = slice_trim(slice_of(list->p, n));
	*list = slice_of(list->p + n + (comma >= 0), list->n - n - (comma >= 0));
	return true;
}

/* True if the weight behind ";" is zero: "q=0", "q=0.000". */
static bool is_refused(struct slice parameters)
{
	struct slice q = slice_trim(parameters);

	if (q.n < 3 || (q.p[0] | 0x20) != 'q' || q.p[1] != '=')
		return false;
	for (size_t i = 2; i < q.n; i++)
		if (q.p[i] != '0' && q.p[i] != '.')
			return false;
	return true;
}

/* Reads an element of Accept-Encoding. Returns the bit of its coding, or 0. *seen: the codings that
 * were named before; the first mention of a coding counts. */
static unsigned accepted_by(struct slice element, unsigned *seen)
{
	ptrdiff_t semicolon = slice_find_byte(element, ';');
	size_t n = semicolon < 0 ? element.n : (size_t)semicolon;
	enum content_coding coding = coding_named(slice_trim(slice_of(element.p, n)));
	unsigned bit;

	if (!content_is_compressed(coding))
		return 0;
	bit = 1u << content_decoder_of(coding);
	if (*seen & bit)
		return 0;
	*seen |= bit;
	if (semicolon >= 0 && is_refused(slice_of(element.p + n + 1, element.n - n - 1)))
		return 0;
	return bit;
}

unsigned content_accepted(const struct http_fields *fields)
{
	struct slice list, element;
	unsigned accepted = 0, seen = 0;

	for (size_t i = 0; i < fields->count; i++) {
		if (fields->items[i].known != HTTP_ACCEPT_ENCODING || fields->items[i].dropped)
			continue;
		list = fields->items[i].value;
		while (next_element(&list, &element))
			accepted |= accepted_by(element, &seen);
	}
	return accepted;
}

struct slice content_asking_for(unsigned accepted)
{
	static const struct slice texts[1u << DECOMPRESS_CODING_COUNT] = {{"identity", 8},
	        {"gzip", 4}, {"deflate", 7}, {"gzip, deflate", 13}, {"br", 2}, {"gzip, br", 8},
	        {"deflate, br", 11}, {"gzip, deflate, br", 17}, {"zstd", 4}, {"gzip, zstd", 10},
	        {"deflate, zstd", 13}, {"gzip, deflate, zstd", 19}, {"br, zstd", 8},
	        {"gzip, br, zstd", 14}, {"deflate, br, zstd", 17}, {"gzip, deflate, br, zstd", 23}};

	return texts[accepted];
}

bool content_forbids_transform(const struct http_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++)
		if (http_names_alike(fields->items[i].name, SLICE("cache-control")) &&
		        http_list_has(fields->items[i].value, SLICE("no-transform")))
			return true;
	return false;
}

/* --- fields that describe the content --- */

bool content_is_digest(struct slice name)
{
	static const struct slice names[] = {{"digest", 6}, {"content-digest", 14},
	        {"repr-digest", 11}, {"content-md5", 11}, {"signature", 9}, {"x-goog-hash", 11}};
	static const struct slice amazon = {"x-amz-checksum-", 15};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (http_names_alike(name, names[i]))
			return true;
	return name.n > amazon.n && http_names_alike(slice_of(name.p, amazon.n), amazon);
}

bool content_has_digest(const struct http_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++)
		if (content_is_digest(fields->items[i].name))
			return true;
	return false;
}

static struct http_field *find_etag(struct http_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++)
		if (slice_equals_ignoring_case(fields->items[i].name, SLICE("etag")))
			return &fields->items[i];
	return NULL;
}

/* Returns 0, or -ENOMEM with nothing changed. */
static int make_weak(struct http_field *etag, char **kept)
{
	if (!etag || slice_starts_with(etag->value, SLICE("W/")))
		return 0;
	*kept = malloc(etag->value.n + 2);
	if (!*kept)
		return -ENOMEM;
	memcpy(*kept, "W/", 2);
	memcpy(*kept + 2, etag->value.p, etag->value.n);
	etag->value = slice_of(*kept, etag->value.n + 2);
	return 0;
}

int content_describe_decompressed(struct http_fields *r, char **kept)
{
	int rc = make_weak(find_etag(r), kept);

	if (rc == 0)
		http_drop(r, SLICE("content-encoding"));
	return rc;
}

static bool asks_about_weak(struct slice list, struct slice etag)
{
	for (; list.n >= etag.n + 2; list.p++, list.n--)
		if (memcmp(list.p, "W/", 2) == 0 &&
		        slice_equals(slice_of(list.p + 2, etag.n), etag))
			return true;
	return false;
}

int content_describe_unmodified(
        const struct http_fields *request, struct http_fields *response, char **kept)
{
	struct http_field *etag = find_etag(response);

	for (size_t i = 0; etag && i < request->count; i++) {
		const struct http_field *f = &request->items[i];

		if (slice_equals_ignoring_case(f->name, SLICE("if-none-match")) &&
		        asks_about_weak(f->value, etag->value))
			return make_weak(etag, kept);
	}
	return 0;
}
