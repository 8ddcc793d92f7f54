/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that another program has written, which may have been taken over. The first byte says
 * which: a ring's (position and distance of its writer, then records), a journal's (the head, then
 * what stands at the beginning of batch and notes), or names' (the file). Whoever reads it must
 * come to an end, stay within it, and believe only what makes sense.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vethguard/base/cursor.h"
#include "vethguard/dns/responder.h"
#include "vethguard/ipc/journal.h"
#include "vethguard/ipc/ring.h"
#include "vethguard/ipc/shared_names.h"
#include "vethguard/policy/url.h"

#define PAGE 4096
#define NAMES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static uint8_t *map(int fd, size_t size)
{
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	require(p != MAP_FAILED);
	return p;
}

/* --- ring --- */

static void try_ring(struct reader *r)
{
	static struct ring ring;
	static uint8_t *memory, record[RING_RECORD_MAX];
	uint64_t position = reader_u64(r), head = position + reader_u32(r);
	size_t records = 0;
	int fds[3], n;

	if (!memory) {
		require(ring_create(fds) == 0);
		memory = map(fds[0], PAGE + RING_BYTES);
		require(ring_open_reader(&ring, fds[0], fds[1], fds[2]) == 0);
	}
	for (size_t i = 0; i < r->left && i < RING_BYTES; i++)
		memory[PAGE + (position + i) % RING_BYTES] = r->p[i];
	memcpy(memory, &head, sizeof(head));
	ring_seek(&ring, position);
	while ((n = ring_read(&ring, record)) > 0) {
		require(n <= RING_RECORD_MAX && ++records <= RING_BYTES / 8);
		ring_release(&ring);
	}
	require(n == 0 || n == -EBADMSG);
	require(n < 0 || ring.position == head);
	ring_seek_unknown(&ring);
	ring_sleep(&ring);
}

/* --- journal --- */

static void touch(struct slice s, size_t size)
{
	require(s.n <= size);
	for (size_t i = 0; i < s.n; i += PAGE)
		(void)*(const volatile char *)(s.p + i);
	if (s.n)
		(void)*(const volatile char *)(s.p + s.n - 1);
}

static void try_journal(struct reader *r)
{
	static struct journal journal;
	static uint8_t *memory;
	const size_t size = PAGE + JOURNAL_BATCH_MAX + 2 * JOURNAL_NOTES_MAX;
	struct slice batch;
	off_t offset;

	if (!memory) {
		int fd = journal_create();

		require(fd >= 0);
		memory = map(fd, size);
		require(journal_open(&journal, fd) == 0);
	}
	reader_copy(r, memory, 64);
	touch(journal_notes(&journal), JOURNAL_NOTES_MAX);
	touch(journal_mark(&journal), JOURNAL_MARK_MAX);
	if (journal_begun(&journal, &batch, &offset)) {
		require(offset >= 0 && batch.n > 0);
		touch(batch, JOURNAL_BATCH_MAX);
	}
	journal_forget(&journal);
	require(!journal_begun(&journal, &batch, &offset));
	memset(journal_spare(&journal), 1, 16);
	journal_begin(&journal, 16, SLICE("line"), 7);
	require(journal_begun(&journal, &batch, &offset) && slice_equals(batch, SLICE("line")));
	journal_commit(&journal);
	require(journal_notes(&journal).n == 16 && journal_notes(&journal).p[15] == 1);
}

/* --- names --- */

static void check_name(struct names *names, const struct ip *address)
{
	char canonical[POLICY_HOST_MAX + 1];
	struct slice host;
	size_t n;

	if (names_lookup(names, address, &host))
		require(url_canonical_host(host, canonical, &n) &&
		        slice_equals(host, slice_of(canonical, n)));
}

static void try_names(struct reader *r)
{
	static const char *const hosts[] = {"a.test", "b.test", "c.test"};
	struct ip_prefix pool4, pool6;
	struct ip v4, v6;
	struct names *names;
	uint32_t dropped;
	int fd = shared_names_create(NAMES);

	require(fd >= 0);
	require(pwrite(fd, r->p,
	                r->left < shared_names_bytes(NAMES) ? r->left : shared_names_bytes(NAMES),
	                0) >= 0);
	require(ip_prefix_parse(SLICE("10.1.0.0/16"), &pool4));
	require(ip_prefix_parse(SLICE("fd01::/64"), &pool6));
	names = names_new(&pool4, &pool6, NAMES);
	require(names && names_share(names, fd, 1000, &dropped) == 0);
	require(names_count(names) <= NAMES && dropped <= NAMES);
	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		struct slice host = slice_from_string(hosts[i]), is;

		if (names_assign(names, host, 2000, &v4, &v6) < 0)
			continue;
		require(names_lookup(names, &v4, &is) && slice_equals(is, host));
		require(names_lookup(names, &v6, &is) && slice_equals(is, host));
		names_hold(names, &v6);
	}
	v4 = pool4.base;
	for (unsigned i = 0; i < 512; i++) {
		v4.bytes[2] = (uint8_t)(i >> 8);
		v4.bytes[3] = (uint8_t)i;
		check_name(names, &v4);
		names_release(names, &v4);
	}
	names_free(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(struct reader *) = {try_ring, try_journal, try_names};
	struct reader r = reader_over(data, size);
	uint8_t which = reader_u8(&r);

	if (which < sizeof(tries) / sizeof(*tries))
		tries[which](&r);
	return 0;
}
