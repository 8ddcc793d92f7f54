/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two places for notes, of which one counts, and one for a batch. One word says which notes count
 * and how long the batch is that is being written; it changes in one store, after everything it
 * speaks of is in place. A process that is killed leaves its stores in the order it made them, so
 * that whoever maps the memory next finds either the old state or the new one, and both are whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/ipc/journal.h"

#define HEAD_BYTES 4096
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct journal_shared {
	_Alignas(HEAD_BYTES) _Atomic uint64_t word; /* bytes of the batch << 1 | notes that count */
	int64_t offset;
	uint64_t notes_bytes[2];
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
	int fd = memfd_create("vethguard-journal", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct journal_shared)) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

int journal_open(struct journal *journal, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS), error = -EBADMSG;
	void *memory = MAP_FAILED;
	struct stat st;

	if (seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &st) == 0 &&
	        st.st_size == (off_t)sizeof(struct journal_shared)) {
		memory = mmap(NULL, sizeof(struct journal_shared), PROT_READ | PROT_WRITE,
		        MAP_SHARED, fd, 0);
		error = memory == MAP_FAILED ? -errno : 0;
	}
	close(fd);
	journal->shared = memory == MAP_FAILED ? NULL : memory;
	return error;
}

void journal_close(struct journal *journal)
{
	if (journal->shared)
		munmap(journal->shared, sizeof(struct journal_shared));
	journal->shared = NULL;
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
