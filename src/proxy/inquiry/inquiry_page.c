/* SPDX-License-Identifier: Apache-2.0 */
/* In plain text each member is a line "key: value"; an object of a list follows an empty line. */
#include "proxy/inquiry/inquiry_page.h"

#include <stdio.h>
#include <time.h>

#define TIME_MAX 32
#define MS_PER_S 1000

void page_init(struct page *page, bool is_json)
{
	*page = (struct page){.is_json = is_json};
	buf_init(&page->out, PAGE_BYTES_MAX);
	json_begin(&page->json, &page->out);
	if (is_json)
		json_object(&page->json, NULL);
}

void page_fini(struct page *page)
{
	buf_fini(&page->out);
}

bool page_end(struct page *page)
{
	if (!page->is_json)
		return !page->json.failed;
	json_end_object(&page->json);
	if (buf_append(&page->out, "\n", 1) < 0)
		page->json.failed = true;
	return !page->json.failed;
}

/* Writes a line of the text. key NULL: an item of a list. */
static void line(struct page *page, const char *key, const char *text)
{
	int rc = buf_printf(&page->out, "%*s%s%s%s\n", (int)page->depth * 2, "", key ? key : "-",
	        key ? ": " : " ", text);

	if (rc < 0)
		page->json.failed = true;
}

static void put(struct page *page, const char *key, struct slice text)
{
	char shown[PAGE_TEXT_MAX];

	if (page->is_json)
		json_string(&page->json, key, text, PAGE_TEXT_MAX);
	else
		line(page, key, slice_escape(text, shown, sizeof(shown)));
}

void page_text(struct page *page, const char *key, struct slice text)
{
	put(page, key, text);
}

void page_item(struct page *page, struct slice text)
{
	put(page, NULL, text);
}

void page_number(struct page *page, const char *key, uint64_t number)
{
	char digits[24];

	if (page->is_json) {
		json_uint(&page->json, key, number);
		return;
	}
	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	line(page, key, digits);
}

void page_bool(struct page *page, const char *key, bool value)
{
	if (page->is_json)
		json_bool(&page->json, key, value);
	else
		line(page, key, value ? "yes" : "no");
}

void page_id(struct page *page, const char *key, uint64_t id)
{
	char digits[17];

	snprintf(digits, sizeof(digits), "%016llx", (unsigned long long)id);
	put(page, key, slice_from_string(digits));
}

void page_time(struct page *page, const char *key, int64_t ms)
{
	char text[TIME_MAX], whole[TIME_MAX] = "";
	time_t seconds = ms / MS_PER_S;
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(whole, sizeof(whole), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%.19s.%03dZ", whole, (int)(ms % MS_PER_S));
	put(page, key, slice_from_string(text));
}

void page_list(struct page *page, const char *key)
{
	if (page->is_json)
		json_array(&page->json, key);
	else
		line(page, key, "");
	page->depth++;
}

void page_list_end(struct page *page)
{
	page->depth--;
	if (page->is_json)
		json_end_array(&page->json);
}

void page_object(struct page *page)
{
	if (page->is_json)
		json_object(&page->json, NULL);
	else if (buf_append(&page->out, "\n", 1) < 0)
		page->json.failed = true;
}

void page_object_end(struct page *page)
{
	if (page->is_json)
		json_end_object(&page->json);
}
