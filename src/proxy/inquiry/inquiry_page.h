/* SPDX-License-Identifier: Apache-2.0 */
/* page: one answer as JSON or as plain text, from the same calls. */
#ifndef VETHGUARD_SRC_PROXY_INQUIRY_INQUIRY_PAGE_H
#define VETHGUARD_SRC_PROXY_INQUIRY_INQUIRY_PAGE_H

#include "vethguard/base/buf.h"
#include "vethguard/wire/json.h"

#define PAGE_BYTES_MAX (1u << 20)
#define PAGE_TEXT_MAX 2048 /* bytes of one text; a longer one is cut */

struct page {
	struct buf out;
	struct json json;
	bool is_json;
	unsigned depth; /* of lists, in plain text: two spaces each */
};

void page_init(struct page *page, bool is_json);
void page_fini(struct page *page);
/* Ends the outermost object. Returns false if the page has become too large. */
bool page_end(struct page *page);
void page_text(struct page *page, const char *key, struct slice text);
void page_number(struct page *page, const char *key, uint64_t number);
void page_bool(struct page *page, const char *key, bool value);
void page_id(struct page *page, const char *key, uint64_t id);  /* 16 hex digits */
void page_time(struct page *page, const char *key, int64_t ms); /* RFC 3339, UTC */
/* A list of objects, or of texts. */
void page_list(struct page *page, const char *key);
void page_list_end(struct page *page);
void page_object(struct page *page);
void page_object_end(struct page *page);
void page_item(struct page *page, struct slice text);

#endif
