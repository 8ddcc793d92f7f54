/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: an encoded text changes between capitals, small letters and digits at most
 * of its places, and uses its letters evenly; names, words, dates, versions and identifiers do not.
 * Hex digits are no sign of their own in paths and queries: digests and ids of commits are in very
 * many URLs, and the scan decodes them. The thresholds were chosen: a path's from the ids that
 * services put there (UUIDs, digests, names of files stay below), a query's so that short cursors
 * do. What honest texts reach them was counted afterwards (docs/performance.md, "Secrets").
 */
#include <string.h>

#include "dlp/format_ids.h"
#include "dlp/shapes.h"
#include "vethguard/dlp/scan.h"

#define PATH_MIN 28       /* characters of one segment */
#define QUERY_MIN 64      /* of one value */
#define HOST_PART_MIN 8   /* of one label */
#define HOST_LABEL_MIN 16 /* of one label that is enough by itself */
#define HOST_ALL_MIN 24   /* of such labels together */
#define EVEN_LETTERS 14
#define HOST_EVEN_LETTERS 6

enum kind { UPPER, LOWER, DIGIT, OTHER };

static enum kind kind_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return UPPER;
	if (c >= 'a' && c <= 'z')
		return LOWER;
	return c >= '0' && c <= '9' ? DIGIT : OTHER;
}

/* The longest run of letters, digits, '-' and '_' in the text. */
static struct slice longest_word(struct slice text)
{
	struct slice best = {text.p, 0};
	size_t at = 0;

	while (at < text.n) {
		size_t n = shape_run(CLASS_WORD, (const uint8_t *)text.p + at, text.n - at, text.n);

		if (n > best.n)
			best = slice_of(text.p + at, n);
		at += n + 1;
	}
	return best;
}

/* True if the word has all three kinds and changes between them at two of five places at least. */
static bool is_mixed(struct slice word)
{
	size_t counts[4] = {0}, changes = 0;

	for (size_t i = 0; i < word.n; i++) {
		counts[kind_of(word.p[i])]++;
		changes += i > 0 && kind_of(word.p[i]) != kind_of(word.p[i - 1]);
	}
	return counts[UPPER] * 8 >= word.n && counts[LOWER] * 8 >= word.n &&
	       counts[DIGIT] * 16 >= word.n && counts[OTHER] * 8 < word.n &&
	       changes * 5 >= word.n * 2 &&
	       shape_is_even((const uint8_t *)word.p, word.n, EVEN_LETTERS);
}

/* Takes the text up to one of the separators off rest. */
static struct slice next_part(struct slice *rest, const char *separators)
{
	size_t n = 0;
	struct slice part;

	while (n < rest->n && !strchr(separators, rest->p[n]))
		n++;
	part = slice_of(rest->p, n);
	n += n < rest->n;
	*rest = slice_of(rest->p + n, rest->n - n);
	return part;
}

uint32_t dlp_entropy_path(struct slice path)
{
	while (path.n) {
		struct slice word = longest_word(next_part(&path, "/"));

		if (word.n >= PATH_MIN && is_mixed(word))
			return DLP_HIGH_ENTROPY_PATH;
	}
	return DLP_NONE;
}

/* Parameters in which services send random texts of their own: signatures, cursors, tokens that
 * they gave out. */
static bool is_of_service(struct slice name)
{
	static const char *const words[] = {"sig", "token", "cursor", "policy", "key-pair",
	        "credential", "state", "nonce", "code", "hash", "digest", "integrity", "jwt",
	        "page", "after", "before", "etag", "session"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t n = strlen(words[i]);

		for (size_t at = 0; at + n <= name.n; at++)
			if (slice_equals_ignoring_case(
			            slice_of(name.p + at, n), slice_of(words[i], n)))
				return true;
	}
	return false;
}

uint32_t dlp_entropy_query(struct slice query)
{
	while (query.n) {
		struct slice pair = next_part(&query, "&;");
		ptrdiff_t equals = slice_find_byte(pair, '=');
		struct slice name = slice_of(pair.p, equals < 0 ? 0 : (size_t)equals);
		struct slice word = longest_word(slice_of(pair.p + name.n, pair.n - name.n));

		if (word.n >= QUERY_MIN && is_mixed(word) && !is_of_service(name))
			return DLP_HIGH_ENTROPY_QUERY;
	}
	return DLP_NONE;
}

/* True for a label of hex digits or base32: evenly used, and with many digits. */
static bool is_encoded_label(struct slice label)
{
	size_t digits = 0, letters = 0;

	for (size_t i = 0; i < label.n; i++) {
		digits += kind_of(label.p[i]) == DIGIT;
		letters += kind_of(label.p[i]) == LOWER || kind_of(label.p[i]) == UPPER;
	}
	return label.n >= HOST_PART_MIN && letters > 0 && digits * 8 >= label.n &&
	       (digits + letters) * 8 >= label.n * 7 &&
	       shape_is_even((const uint8_t *)label.p, label.n, HOST_EVEN_LETTERS);
}

/* The labels before the last two. */
uint32_t dlp_entropy_host(struct slice host)
{
	struct slice labels[2] = {{0}};
	size_t count = 0, all = 0;

	while (host.n) {
		struct slice label = next_part(&host, "."), earlier = labels[count % 2];

		if (count >= 2 && is_encoded_label(earlier)) {
			all += earlier.n;
			if (earlier.n >= HOST_LABEL_MIN || all >= HOST_ALL_MIN)
				return DLP_HIGH_ENTROPY_HOST;
		}
		labels[count++ % 2] = label;
	}
	return DLP_NONE;
}
