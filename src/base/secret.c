/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A value lies in a vault: pages between two guard pages without access, locked, excluded from core
 * dumps, and emptied by the kernel in a forked child. A large value has a vault of its own and ends
 * at its upper guard page. Values of up to SLOT_BYTES share vaults of sixteen slots, so that a
 * keeper with thousands of tokens needs one page for sixteen of them instead of three for each.
 * Pages are locked when they are first written, so unused ones take no memory. The records of which
 * slots are used lie in ordinary memory, where an overrun of a value cannot reach them.
 * Single-threaded, like everything here.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vethguard/base/secret.h"

#define SLOT_BYTES ((size_t)256)
#define SLOTS 16 /* SLOT_BYTES * SLOTS is the smallest page size that exists */
#define ALIGNMENT 16

struct shared_vault {
	struct shared_vault *next;
	uint8_t *p;
	uint16_t used; /* one bit per slot */
};

static struct shared_vault *shared_vaults;

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

int secret_lock(const void *p, size_t n)
{
	if (mlock2(p, n, MLOCK_ONFAULT) == 0)
		return 0;
	/* EINVAL: what the C library returns for ENOSYS here */
	return errno == ENOSYS || errno == EINVAL ? mlock(p, n) : -1;
}

static int harden(uint8_t *p, size_t n)
{
	if (mprotect(p, n, PROT_READ | PROT_WRITE) < 0 || secret_lock(p, n) < 0 ||
	        madvise(p, n, MADV_DONTDUMP) < 0 || madvise(p, n, MADV_WIPEONFORK) < 0)
		return -errno;
	return 0;
}

/* n has to be a multiple of the page size. */
static int vault_open(size_t n, uint8_t **out)
{
	size_t guard = page_bytes();
	uint8_t *all;
	int rc;

	all = mmap(NULL, n + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return -errno;
	rc = harden(all + guard, n);
	if (rc) {
		munmap(all, n + 2 * guard);
		return rc;
	}
	*out = all + guard;
	return 0;
}

static void vault_close(uint8_t *p, size_t n)
{
	size_t guard = page_bytes();

	munmap(p - guard, n + 2 * guard);
}

static struct shared_vault *shared_vault_with_room(int *err)
{
	struct shared_vault *v;

	for (v = shared_vaults; v; v = v->next)
		if (v->used != UINT16_MAX)
			return v;
	v = calloc(1, sizeof(*v));
	if (!v) {
		*err = -ENOMEM;
		return NULL;
	}
	*err = vault_open(page_bytes(), &v->p);
	if (*err) {
		free(v);
		return NULL;
	}
	v->next = shared_vaults;
	shared_vaults = v;
	return v;
}

static int slot_take(uint8_t **out)
{
	int rc = 0;
	struct shared_vault *v = shared_vault_with_room(&rc);
	unsigned slot = 0;

	_Static_assert(SLOTS == 8 * sizeof(v->used), "a bit per slot");
	if (!v)
		return rc;
	while (v->used & 1u << slot)
		slot++;
	v->used = (uint16_t)(v->used | 1u << slot);
	*out = v->p + slot * SLOT_BYTES;
	return 0;
}

static void slot_give_back(const uint8_t *p)
{
	for (struct shared_vault **at = &shared_vaults; *at; at = &(*at)->next) {
		struct shared_vault *v = *at;

		if (p < v->p || p >= v->p + SLOTS * SLOT_BYTES)
			continue;
		v->used = (uint16_t)(v->used & ~(1u << ((size_t)(p - v->p) / SLOT_BYTES)));
		if (v->used == 0) {
			*at = v->next;
			vault_close(v->p, page_bytes());
			free(v);
		}
		return;
	}
}

int secret_alloc(struct secret *s, size_t cap)
{
	uint8_t *p = NULL;
	int rc;

	*s = (struct secret){0};
	if (cap == 0 || cap > SECRET_MAX)
		return -EINVAL;
	if (cap <= SLOT_BYTES) {
		rc = slot_take(&p);
	} else {
		size_t pages = round_up(cap, page_bytes());

		rc = vault_open(pages, &p);
		if (!rc)
			p += pages - round_up(cap, ALIGNMENT);
	}
	if (rc)
		return rc;
	*s = (struct secret){.p = p, .cap = cap};
	return 0;
}

int secret_copy(struct secret *s, const void *p, size_t n)
{
	int rc = secret_alloc(s, n);

	if (rc)
		return rc;
	memcpy(s->p, p, n);
	s->n = n;
	return 0;
}

void secret_free(struct secret *s)
{
	if (!s->p)
		return;
	secret_wipe(s->p, s->cap);
	if (s->cap <= SLOT_BYTES) {
		slot_give_back(s->p);
	} else {
		size_t pages = round_up(s->cap, page_bytes());

		vault_close(s->p + round_up(s->cap, ALIGNMENT) - pages, pages);
	}
	*s = (struct secret){0};
}

void secret_wipe(void *p, size_t n)
{
	if (n)
		explicit_bzero(p, n);
}
