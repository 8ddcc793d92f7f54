/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes that a recorder finds in its journal, and a batch that one before it has begun: written by
 * a recorder that may have been taken over, or kept in a file that was damaged. The first four
 * bytes say how large the log is and how large the batch; then comes where it began, then notes as
 * they lie in the journal. Whatever they say, the next recorder starts, makes lines of it that can
 * be read, and what it notes of it in turn is taken for the same.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recorder/recorder.h"
#include "vethguard/base/cursor.h"
#include "vethguard/base/log.h"

#define PAGE 4096
#define BATCH_UNIT 16 /* the batch is so many bytes times what the input says */
#define TURNS 8       /* of draining, until all that a note can hold is in lines */
#define FEW 16        /* notes that certainly have all the room they want */
#define OTHER_ID 77   /* of a sandbox that most likely nothing is noted of */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct recorder one, two;
static uint8_t *memory;
static int journal_fd, log_fd;

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void say_nothing(const struct log_record *record)
{
	(void)record;
}

static void set_up(void)
{
	const size_t bytes = PAGE + JOURNAL_BATCH_MAX + 2 * JOURNAL_NOTES_MAX;

	log_to(say_nothing);
	journal_fd = journal_create();
	log_fd = memfd_create("log", MFD_CLOEXEC);
	require(journal_fd >= 0 && log_fd >= 0);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, journal_fd, 0);
	require(memory != MAP_FAILED);
}

/* --- one recorder --- */

static void start(struct recorder *r)
{
	memset(r, 0, offsetof(struct recorder, checkpoint));
	r->state = RECORDER_FLOWS;
	require(journal_open(&r->journal, dup(journal_fd)) == 0);
	require(log_file_open(&r->log, dup(log_fd), dup(log_fd), SLICE("log"),
	                RECORDER_PENDING_MAX) == 0);
	require(checkpoint_inherit(r) == 0);
}

static void stop(struct recorder *r)
{
	while (r->streams)
		stream_close(r->streams);
	buf_fini(&r->checkpoint.inherited);
	log_file_close(&r->log);
	journal_close(&r->journal);
}

static struct stream *tell(struct recorder *r, uint64_t id)
{
	const struct message_recorder_sandbox m = {
	        .sandbox_id = id, .sandbox = SLICE("box"), .policy = SLICE("policy")};

	require(stream_open(r, &m, -1) == 0);
	return stream_find(r, id);
}

/* The pending lines begin at `at`. */
static void read_lines(struct buf *pending, size_t at)
{
	struct slice text = buf_slice(pending);

	if (at)
		text = slice_of(text.p + at, text.n - at);
	while (text.n) {
		ptrdiff_t n = slice_find_byte(text, '\n');
		struct seal seal;

		require(n >= 0 && seal_parse(slice_of(text.p, (size_t)n), &seal) == 0);
		text = slice_of(text.p + n + 1, text.n - (size_t)n - 1);
	}
	buf_consume(pending, pending->len);
}

static void drain(struct recorder *r, struct stream *s)
{
	size_t begun = r->log.pending.len;
	int more = 1;

	for (unsigned i = 0; i < TURNS && more; i++) {
		more = stream_drain(s, true);
		require(more >= 0);
		read_lines(&r->log.pending, begun);
		begun = 0;
	}
	require(more == 0 && packets_counted(&s->packets) == 0);
}

static void report(const struct stream *s)
{
	static char texts[MESSAGE_UNUSUAL_MAX][SUMMARY_SHOWN_MAX];
	struct message_summary m;

	summary_report(&s->summary, &m, texts);
	require(m.unusual_count <= MESSAGE_UNUSUAL_MAX);
	for (size_t i = 0; i < m.unusual_count; i++)
		require(m.unusual[i].what.n < SUMMARY_SHOWN_MAX);
}

/* --- and the next one --- */

static void compare(const struct stream *a, const struct stream *b)
{
	require(a->ocsf.sequence == b->ocsf.sequence && a->told == b->told);
	require(a->summary.lines == b->summary.lines && a->summary.dropped == b->summary.dropped &&
	        a->summary.count == b->summary.count);
	require(a->packets_lost == b->packets_lost && a->fence_base == b->fence_base);
	require(a->known_count == b->known_count);
	require(packets_counted(&a->packets) == packets_counted(&b->packets));
}

static void go_on(uint64_t id, uint64_t other)
{
	struct stream *s = tell(&one, id), *t;
	size_t carried = one.checkpoint.inherited.len;

	checkpoint_begin(&one);
	checkpoint_commit(&one);
	start(&two);
	require(two.log.pending.len == 0);
	t = tell(&two, id);
	if (carried / sizeof(struct ring_source_note) < FEW)
		compare(s, t);
	drain(&one, s);
	report(s);
	drain(&two, tell(&two, other));
	stop(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader r = reader_over(data, size);
	uint64_t log_bytes = reader_u16(&r), batch = reader_u16(&r) * BATCH_UNIT, id = OTHER_ID;
	uint64_t offset = reader_u64(&r), word = batch << 1, n = r.left;

	if (!memory)
		set_up();
	if (!r.failed && n <= JOURNAL_NOTES_MAX && ftruncate(log_fd, 0) == 0 &&
	        ftruncate(log_fd, (off_t)log_bytes) == 0) {
		if (n >= sizeof(id))
			memcpy(&id, r.p, sizeof(id));
		memcpy(memory, &word, sizeof(word));
		memcpy(memory + 8, &offset, sizeof(offset));
		memcpy(memory + 16, &n, sizeof(n));
		memcpy(memory + 24, &n, sizeof(n));
		for (size_t i = 0; i < 2 && n; i++)
			memcpy(memory + PAGE + JOURNAL_BATCH_MAX + i * JOURNAL_NOTES_MAX, r.p, n);
		start(&one);
		go_on(id, id == OTHER_ID ? OTHER_ID + 1 : OTHER_ID);
		stop(&one);
	}
	return 0;
}
