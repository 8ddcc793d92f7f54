/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two signs.
 *
 * Encoded labels: a label of encoded data uses its letters evenly, and has the digits of an
 * encoding or lacks the vowels of a language. Evenness is n*n / sum(count*count), the number of
 * letters from which the label seems to draw: about 12 for 40 hex digits, 18 for base32.
 *
 * Many names: each parent has a bitmap in which every name sets one bit, chosen by a keyed hash.
 * The number of set bits shows how many different names there were, in 32 bytes and without keeping
 * any name. Parents are kept in a bounded table in order of last use.
 */
#include <stdlib.h>
#include <utlist.h>

#include "vethguard/base/hash.h"
#include "vethguard/base/table.h"
#include "vethguard/dns/tunnel.h"

#define BITMAP_BITS 256
#define EVEN_LETTERS_MIN 4
#define PARENT_BYTES_MAX 128 /* two or three labels; of longer parents the first bytes count */

/* Bits expected to be set by 60 different names within the window: 256 * (1 - (255/256)^60) =
 * 53.6. */
#define BITS_SUSPICIOUS 53

struct watched {
	UT_hash_handle hh;
	struct watched *prev, *next; /* in order of last use */
	uint8_t bits[BITMAP_BITS / 8];
	unsigned bits_set;
	int64_t window_ms; /* when counting began */
	int64_t reported_ms;
	bool reported;
	size_t name_n;
	char name[];
};

struct dns_tunnel {
	struct hash_key key;
	struct watched *table;
	struct watched *used; /* least recently used first */
	size_t count;
};

struct dns_tunnel *dns_tunnel_new(void)
{
	struct dns_tunnel *t = calloc(1, sizeof(*t));

	if (t)
		t->key = hash_random_key();
	return t;
}

static void forget(struct dns_tunnel *t, struct watched *w)
{
	HASH_DEL(t->table, w);
	DL_DELETE(t->used, w);
	t->count--;
	free(w);
}

void dns_tunnel_free(struct dns_tunnel *t)
{
	if (!t)
		return;
	while (t->used)
		forget(t, t->used);
	free(t);
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* True for evenly used letters with many digits or few vowels. */
static bool looks_encoded(struct slice bytes, size_t min_bytes)
{
	unsigned counts[256] = {0};
	size_t digits = 0, letters = 0, vowels = 0, squares = 0;

	if (bytes.n < min_bytes)
		return false;
	for (size_t i = 0; i < bytes.n; i++) {
		char c = lower(bytes.p[i]);

		counts[(unsigned char)c]++;
		digits += c >= '0' && c <= '9';
		letters += c >= 'a' && c <= 'z';
		vowels += c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u';
	}
	for (size_t i = 0; i < 256; i++)
		squares += (size_t)counts[i] * counts[i];
	if (bytes.n * bytes.n < EVEN_LETTERS_MIN * squares)
		return false;
	return digits * 10 >= bytes.n || vowels * 4 < letters;
}

/* Where the label that ends at `end` begins. */
static size_t label_start(struct slice name, size_t end)
{
	while (end > 0 && name.p[end - 1] != '.')
		end--;
	return end;
}

struct slice dns_tunnel_parent(struct slice name)
{
	size_t top = label_start(name, name.n);
	size_t second = top ? label_start(name, top - 1) : 0;
	bool country = name.n - top == 2 && top > second && top - 1 - second <= 3;
	size_t start = second;

	if (country && second > 0)
		start = label_start(name, second - 1);
	return slice_of(name.p + start, name.n - start);
}

static bool has_encoded_label(struct slice subdomain)
{
	size_t end = subdomain.n;

	while (end > 0) {
		size_t start = label_start(subdomain, end);

		if (looks_encoded(slice_of(subdomain.p + start, end - start), DNS_TUNNEL_LABEL_MIN))
			return true;
		end = start ? start - 1 : 0;
	}
	return looks_encoded(subdomain, DNS_TUNNEL_SUBDOMAIN_MIN);
}

static struct watched *watch(struct dns_tunnel *t, struct slice parent, int64_t now_ms)
{
	struct watched *w;
	unsigned hash = (unsigned)hash_bytes(&t->key, parent.p, parent.n);

	HASH_FIND_BYHASHVALUE(hh, t->table, parent.p, parent.n, hash, w);
	if (w) {
		DL_DELETE(t->used, w);
		DL_APPEND(t->used, w);
		return w;
	}
	if (t->count == DNS_TUNNEL_PARENTS_MAX)
		forget(t, t->used);
	w = calloc(1, sizeof(*w) + parent.n);
	if (!w)
		return NULL;
	memcpy(w->name, parent.p, parent.n);
	w->name_n = parent.n;
	w->window_ms = now_ms;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, t->table, w->name, w->name_n, hash, w);
	if (!w->hh.tbl) {
		free(w);
		return NULL;
	}
	DL_APPEND(t->used, w);
	t->count++;
	return w;
}

static bool counts_as_many(
        struct dns_tunnel *t, struct watched *w, struct slice name, int64_t now_ms)
{
	uint64_t bit = hash_bytes(&t->key, name.p, name.n) % BITMAP_BITS;
	uint8_t mask = (uint8_t)(1u << (bit & 7));

	if (now_ms - w->window_ms >= DNS_TUNNEL_WINDOW_MS) {
		memset(w->bits, 0, sizeof(w->bits));
		w->bits_set = 0;
		w->window_ms = now_ms;
	}
	if (!(w->bits[bit >> 3] & mask))
		w->bits_set++;
	w->bits[bit >> 3] |= mask;
	return w->bits_set >= BITS_SUSPICIOUS;
}

enum dns_tunnel_sign dns_tunnel_observe(
        struct dns_tunnel *t, struct slice name, int64_t now_ms, struct slice *parent)
{
	struct slice subdomain, key;
	enum dns_tunnel_sign sign = DNS_TUNNEL_NONE;
	struct watched *w;

	*parent = dns_tunnel_parent(name);
	if (parent->n >= name.n)
		return DNS_TUNNEL_NONE;
	subdomain = slice_of(name.p, name.n - parent->n - 1);
	key = slice_of(parent->p, parent->n < PARENT_BYTES_MAX ? parent->n : PARENT_BYTES_MAX);
	w = watch(t, key, now_ms);
	if (!w)
		return DNS_TUNNEL_NONE;
	if (counts_as_many(t, w, name, now_ms))
		sign = DNS_TUNNEL_MANY_NAMES;
	if (has_encoded_label(subdomain))
		sign = DNS_TUNNEL_ENCODED_LABEL;
	if (sign == DNS_TUNNEL_NONE ||
	        (w->reported && now_ms - w->reported_ms < DNS_TUNNEL_WINDOW_MS))
		return DNS_TUNNEL_NONE;
	w->reported = true;
	w->reported_ms = now_ms;
	return sign;
}

static const char *const sign_texts[] = {
        [DNS_TUNNEL_NONE] = "",
        [DNS_TUNNEL_ENCODED_LABEL] = "A queried name looks like encoded data.",
        [DNS_TUNNEL_MANY_NAMES] = "Very many different names below one domain were queried.",
};
_Static_assert(
        sizeof(sign_texts) / sizeof(sign_texts[0]) == DNS_TUNNEL_MANY_NAMES + 1, "a text per sign");

const char *dns_tunnel_sign_text(enum dns_tunnel_sign sign)
{
	return sign_texts[sign];
}
