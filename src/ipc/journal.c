/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two places for notes, one of which is valid, and one for a batch. One word says which notes are
 * valid and how long the batch is that is being written. It changes in one store, after everything
 * it refers to is in place. The stores of a killed process stay in the order it made them, so the
 * next process that maps the memory finds either the old state or the new one, and both are
 * complete.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/ipc/journal.h"
#include "ipc/private.h"

#define HEAD_BYTES 4096

struct journal_shared {
	/* Bytes of the batch << 1 | index of the valid notes. */
	_Alignas(HEAD_BYTES) _Atomic uint64_t word;
	int64_t offset;
	uint64_t notes_bytes[2];
	/* Of a file; used by the supervisor, which does not map it. */
	struct journal_identity identity;
	_Atomic uint32_t mark_bytes;
	uint8_t mark[JOURNAL_MARK_MAX];
	_Alignas(HEAD_BYTES) uint8_t batch[JOURNAL_BATCH_MAX];
	uint8_t notes[2][JOURNAL_NOTES_MAX];
};

static uint64_t word_of(const struct journal *journal)
{
	return atomic_load_explicit(&journal->shared->word, memory_order_acquire);
}

static void set_word(struct journal *journal, size_t batch_bytes, unsigned counts)
{
	atomic_store_explicit(
	        &journal->shared->word, (uint64_t)batch_bytes << 1 | counts, memory_order_release);
}

int journal_create(void)
{
	return ipc_memory_new("vethguard-journal", sizeof(struct journal_shared));
}

static int count_opening(int fd, struct journal_identity *identity)
{
	const off_t at = offsetof(struct journal_shared, identity);
	const uint32_t now_s = (uint32_t)(clock_real_ms() / 1000), before = identity->opened;

	if (pread(fd, identity, sizeof(*identity), at) != (ssize_t)sizeof(*identity))
		return -EIO;
	identity->opened = identity->opened < now_s ? now_s : identity->opened + 1;
	if (identity->opened <= before)
		identity->opened = before + 1;
	if (identity->created == 0)
		identity->created = identity->opened;
	return pwrite(fd, identity, sizeof(*identity), at) == (ssize_t)sizeof(*identity) ? 0 : -EIO;
}

int journal_open_at(int directory, const char *name, struct journal_identity *identity)
{
	int fd = ipc_memory_open_at(directory, name, sizeof(struct journal_shared)), error;

	if (fd == -ENOENT)
		fd = ipc_memory_new_at(directory, name, sizeof(struct journal_shared));
	if (fd < 0)
		return fd;
	error = count_opening(fd, identity);
	if (error == 0)
		return fd;
	close(fd);
	return error;
}

int journal_open(struct journal *journal, int fd)
{
	int rc;

	journal->shared = ipc_memory_map(fd, sizeof(struct journal_shared), &rc);
	journal->fd = journal->shared ? fd : -1;
	if (rc)
		close(fd);
	return rc;
}

void journal_close(struct journal *journal)
{
	if (!journal->shared)
		return;
	ipc_memory_unmap(journal->shared, sizeof(struct journal_shared));
	close(journal->fd);
	*journal = (struct journal){.fd = -1};
}

bool journal_is_lost(const struct journal *journal)
{
	return ipc_memory_lost(journal->shared);
}

struct slice journal_notes(const struct journal *journal)
{
	uint64_t word = word_of(journal);
	unsigned which = (word & 1) ^ (word >> 1 != 0);
	uint64_t n = journal->shared->notes_bytes[which];

	return slice_of(journal->shared->notes[which], n > JOURNAL_NOTES_MAX ? 0 : (size_t)n);
}

bool journal_begun(const struct journal *journal, struct slice *batch, off_t *offset)
{
	uint64_t n = word_of(journal) >> 1;

	if (n == 0 || n > JOURNAL_BATCH_MAX || journal->shared->offset < 0)
		return false;
	*batch = slice_of(journal->shared->batch, (size_t)n);
	*offset = (off_t)journal->shared->offset;
	return true;
}

void journal_forget(struct journal *journal)
{
	set_word(journal, 0, word_of(journal) & 1);
}

uint8_t *journal_spare(struct journal *journal)
{
	return journal->shared->notes[!(word_of(journal) & 1)];
}

void journal_begin(struct journal *journal, size_t notes_bytes, struct slice batch, off_t offset)
{
	unsigned counts = word_of(journal) & 1;

	journal->shared->notes_bytes[!counts] = notes_bytes;
	journal->shared->offset = offset;
	if (batch.n)
		memcpy(journal->shared->batch, batch.p, batch.n);
	set_word(journal, batch.n, counts);
}

void journal_commit(struct journal *journal)
{
	set_word(journal, 0, !(word_of(journal) & 1));
}

void journal_set_mark(struct journal *journal, struct slice mark)
{
	struct journal_shared *shared = journal->shared;
	size_t n = mark.n > JOURNAL_MARK_MAX ? 0 : mark.n;

	atomic_store_explicit(&shared->mark_bytes, 0, memory_order_seq_cst);
	if (n)
		memcpy(shared->mark, mark.p, n);
	atomic_store_explicit(&shared->mark_bytes, (uint32_t)n, memory_order_release);
}

struct slice journal_mark(const struct journal *journal)
{
	uint32_t n = atomic_load_explicit(&journal->shared->mark_bytes, memory_order_acquire);

	return slice_of(journal->shared->mark, n > JOURNAL_MARK_MAX ? 0 : n);
}
