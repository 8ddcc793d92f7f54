/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines are made of what was read from rings, sockets and the supervisor, and what was read is gone
 * from there. So each batch has a note per sandbox: the position in its rings, its sequence, the
 * last event of the supervisor, what was counted. Batch and notes become valid together. Space in a
 * ring is given back only after the batch is in the file.
 *
 * A recorder that takes over keeps the notes it found until it is told of their sandboxes, one
 * after the other; it carries the others along in its own notes. Each sandbox has an equal share of
 * the room: the indispensable parts always fit; unrecorded packet counts and refused destinations
 * as far as there is room.
 */
#include <errno.h>
#include <utlist.h>

#include "vethguard/base/log.h"

#include "recorder/recorder.h"

/* Its parts follow in the order of their counts. A flag is a byte, because a found one may hold
 * anything. */
struct note {
	uint64_t sandbox_id;
	uint64_t sequence, told;
	uint64_t allowed, denied, failed, observed, dropped, findings, lines;
	uint64_t fence_base;
	uint32_t readers;      /* struct ring_source_note */
	uint32_t destinations; /* struct summary_kept */
	uint32_t kinds;        /* struct packets_kind */
	uint8_t packets_lost;
};

_Static_assert(RECORDER_PENDING_MAX <= JOURNAL_BATCH_MAX, "any batch fits into the journal");
/* Bytes for the notes, without those of the rings of all sandboxes. */
#define SHARED_BYTES \
	(JOURNAL_NOTES_MAX - RECORDER_SOURCES_ALL_MAX * sizeof(struct ring_source_note))
_Static_assert(sizeof(struct note) <= SHARED_BYTES / RECORDER_STREAMS_MAX,
        "what is indispensable of every sandbox fits into the journal");

/* A note as it was found. */
struct found {
	struct note note;
	struct slice readers, destinations, kinds, whole;
};

static bool take(struct slice *text, size_t n, struct slice *part)
{
	if (n > text->n)
		return false;
	*part = slice_of(text->p, n);
	*text = slice_of(text->p + n, text->n - n);
	return true;
}

/* Takes the next note off text. Returns false if there is none, or it is invalid. */
static bool next_note(struct slice *text, struct found *out)
{
	struct slice head, start = *text;

	if (!take(text, sizeof(out->note), &head))
		return false;
	memcpy(&out->note, head.p, sizeof(out->note));
	if (out->note.readers > 2 * RECORDER_SOURCES_MAX || out->note.kinds > PACKETS_MAX + 1 ||
	        out->note.destinations > SUMMARY_DESTINATIONS_MAX)
		return false;
	if (!take(text, out->note.readers * sizeof(struct ring_source_note), &out->readers) ||
	        !take(text, out->note.destinations * sizeof(struct summary_kept),
	                &out->destinations) ||
	        !take(text, out->note.kinds * sizeof(struct packets_kind), &out->kinds))
		return false;
	out->whole = slice_of(start.p, start.n - text->n);
	return true;
}

static int keep_checkpoint(struct recorder *r)
{
	struct slice text = journal_notes(&r->journal);
	struct found found;
	int rc = 0;

	buf_init(&r->checkpoint.inherited, JOURNAL_NOTES_MAX);
	while (rc == 0 && next_note(&text, &found))
		rc = buf_append_slice(&r->checkpoint.inherited, found.whole);
	return rc;
}

int checkpoint_inherit(struct recorder *r)
{
	struct slice batch;
	off_t offset;
	int rc;

	log_file_follow(&r->log, journal_mark(&r->journal));
	if (journal_begun(&r->journal, &batch, &offset)) {
		rc = log_file_adopt(&r->log, batch, offset);
		if (rc < 0)
			return rc;
		r->checkpoint.begun = rc > 0;
		if (r->checkpoint.begun) {
			log_info(
			        "%zu bytes of a batch are still to be written", r->log.pending.len);
		} else {
			log_error("%s was changed by another program: its last lines are written "
			          "again",
			        r->log.path);
			journal_forget(&r->journal);
		}
	}
	return keep_checkpoint(r);
}

static void apply_readers(struct stream *stream, struct slice readers)
{
	struct ring_source_note note;

	for (; readers.n; readers = slice_of(readers.p + sizeof(note), readers.n - sizeof(note))) {
		memcpy(&note, readers.p, sizeof(note));
		stream_keep_ring(stream, &note);
	}
}

static int apply_counts(struct stream *stream, struct slice kinds, struct slice destinations)
{
	struct summary_kept kept;
	struct packets_kind kind;

	for (; kinds.n; kinds = slice_of(kinds.p + sizeof(kind), kinds.n - sizeof(kind))) {
		memcpy(&kind, kinds.p, sizeof(kind));
		if (packets_restore(&stream->packets, &kind) != 0)
			return -ENOMEM;
	}
	for (; destinations.n; destinations = slice_of(destinations.p + sizeof(kept),
	                               destinations.n - sizeof(kept))) {
		memcpy(&kept, destinations.p, sizeof(kept));
		summary_restore(&stream->summary, &kept);
	}
	return 0;
}

static int apply(struct stream *stream, const struct found *found)
{
	const struct note *note = &found->note;

	const struct stream_noted noted = {
	        note->sequence, note->told, note->fence_base, note->packets_lost};

	stream_resume(stream, &noted);
	stream->summary.allowed = note->allowed;
	stream->summary.denied = note->denied;
	stream->summary.failed = note->failed;
	stream->summary.observed = note->observed;
	stream->summary.dropped = note->dropped;
	stream->summary.findings = note->findings;
	stream->summary.lines = note->lines;
	apply_readers(stream, found->readers);
	return apply_counts(stream, found->kinds, found->destinations);
}

int checkpoint_apply(struct stream *stream)
{
	struct buf *inherited = &stream->recorder->checkpoint.inherited;
	struct slice text = buf_slice(inherited);
	struct found found;
	int rc;

	while (next_note(&text, &found)) {
		if (found.note.sandbox_id != stream->ocsf.uid)
			continue;
		rc = apply(stream, &found);
		/* From now on the stream writes its own note. */
		memmove((char *)buf_bytes(inherited) +
		                (found.whole.p - (const char *)buf_bytes(inherited)),
		        text.p, text.n);
		inherited->len -= found.whole.n;
		return rc;
	}
	return 0;
}

/* Writes all ring sources: those that are read, and those that were not given yet. */
static uint32_t write_readers(const struct stream *s, uint8_t *out)
{
	uint32_t n = 0;

	for (const struct ring_source *reader = s->readers; reader; reader = reader->next) {
		struct ring_source_note note = {reader->id, reader->ring.position, reader->broken};

		memcpy(out + n++ * sizeof(note), &note, sizeof(note));
	}
	memcpy(out + n * sizeof(struct ring_source_note), s->known,
	        s->known_count * sizeof(struct ring_source_note));
	return n + (uint32_t)s->known_count;
}

/* Writes a stream's note: all of its rings, and as much of the rest as fits into `share` bytes, in
 * which rings do not count. Returns the bytes of the note. */
static size_t write_note(const struct stream *s, uint8_t *out, size_t share)
{
	const struct summary *sum = &s->summary;
	struct note note = {
	        .sandbox_id = s->ocsf.uid,
	        .sequence = s->ocsf.sequence,
	        .told = s->told,
	        .allowed = sum->allowed,
	        .denied = sum->denied,
	        .failed = sum->failed,
	        .observed = sum->observed,
	        .dropped = sum->dropped,
	        .findings = sum->findings,
	        .lines = sum->lines,
	        .fence_base = s->fence_base,
	        .packets_lost = s->packets_lost,
	};
	size_t n = sizeof(note);

	note.readers = write_readers(s, out + n);
	n += note.readers * sizeof(struct ring_source_note);
	share += note.readers * sizeof(struct ring_source_note);
	note.destinations =
	        (uint32_t)summary_save(sum, out + n, (share - n) / 2 / sizeof(struct summary_kept));
	n += note.destinations * sizeof(struct summary_kept);
	note.kinds = (uint32_t)packets_save(
	        &s->packets, out + n, (share - n) / sizeof(struct packets_kind));
	memcpy(out, &note, sizeof(note));
	return n + note.kinds * sizeof(struct packets_kind);
}

static size_t count_carried(const struct recorder *r)
{
	struct slice text = buf_slice(&r->checkpoint.inherited);
	struct found found;
	size_t n = 0;

	while (next_note(&text, &found))
		n++;
	return n;
}

/* Copies the notes of sandboxes that this recorder was not told of, without the parts that do not
 * fit. */
static size_t carry_along(const struct recorder *r, uint8_t *out, size_t room, size_t share)
{
	struct slice text = buf_slice(&r->checkpoint.inherited);
	struct found found;
	size_t n = 0;

	while (next_note(&text, &found)) {
		size_t bytes = found.whole.n;

		if (bytes > share + found.readers.n) {
			found.note.kinds = found.note.destinations = 0;
			bytes = sizeof(found.note) + found.readers.n;
		}
		if (bytes > room - n)
			break;
		memcpy(out + n, found.whole.p, bytes);
		memcpy(out + n, &found.note, sizeof(found.note));
		n += bytes;
	}
	return n;
}

/* Moves what follows it: with a thousand sandboxes that takes a tenth of the time of rewriting all
 * notes. Returns false if there is no room. */
static bool resize(struct recorder *r, struct checkpoint_noted *place, size_t bytes)
{
	size_t end = place->at + place->bytes;

	if (bytes == place->bytes)
		return true;
	if (r->checkpoint.bytes - place->bytes + bytes > JOURNAL_NOTES_MAX)
		return false;
	if (end < r->checkpoint.bytes) {
		memmove(r->checkpoint.notes + place->at + bytes, r->checkpoint.notes + end,
		        r->checkpoint.bytes - end);
		for (size_t i = 0; i < r->checkpoint.noted_count; i++)
			if (r->checkpoint.noted[i].at >= end)
				r->checkpoint.noted[i].at =
				        r->checkpoint.noted[i].at - place->bytes + bytes;
	}
	r->checkpoint.bytes = r->checkpoint.bytes - place->bytes + bytes;
	place->bytes = bytes;
	return true;
}

static struct checkpoint_noted *place_of(struct recorder *r, struct stream *s)
{
	if (!s->place.is_noted) {
		s->place.at = r->checkpoint.noted_count++;
		s->place.is_noted = true;
		r->checkpoint.noted[s->place.at] =
		        (struct checkpoint_noted){s, r->checkpoint.bytes, 0};
	}
	return &r->checkpoint.noted[s->place.at];
}

static bool note_one(struct recorder *r, struct stream *s, size_t share)
{
	struct checkpoint_noted *place = place_of(r, s);
	size_t bytes = write_note(s, r->checkpoint.note, share);

	if (!resize(r, place, bytes))
		return false;
	memcpy(r->checkpoint.notes + place->at, r->checkpoint.note, bytes);
	s->place.changed = false;
	return true;
}

/* Rewrites the notes of streams that have changed. Returns false if all notes are to be
 * rewritten. */
static bool note_changes(struct recorder *r, size_t share)
{
	struct stream *s;

	if (!r->checkpoint.whole)
		return false;
	DL_FOREACH2(r->awake, s, awake_next)
	{
		if (!note_one(r, s, share))
			return false;
	}
	return true;
}

static void note_all(struct recorder *r, size_t share, size_t carried)
{
	r->checkpoint.bytes = r->checkpoint.noted_count = 0;
	for (struct stream *s = r->streams; s; s = s->next) {
		s->place.is_noted = false;
		note_one(r, s, share); /* the number of shares fits */
	}
	r->checkpoint.bytes += carry_along(r, r->checkpoint.notes + r->checkpoint.bytes,
	        JOURNAL_NOTES_MAX - r->checkpoint.bytes, share);
	r->checkpoint.whole = carried == 0;
}

void checkpoint_forget(struct stream *stream)
{
	struct recorder *r = stream->recorder;
	struct checkpoint_noted *place = &r->checkpoint.noted[stream->place.at];

	if (!stream->place.is_noted || !r->checkpoint.whole)
		return;
	resize(r, place, 0);
	*place = r->checkpoint.noted[--r->checkpoint.noted_count];
	place->stream->place.at = stream->place.at;
}

void checkpoint_begin(struct recorder *r)
{
	size_t carried = count_carried(r), count = r->stream_count + carried;
	/* A multiple of 8, so that unused shares leave no gap of odd size. */
	size_t share = SHARED_BYTES / (count ? count : 1) / 8 * 8;

	if (!note_changes(r, share))
		note_all(r, share, carried);
	memcpy(journal_spare(&r->journal), r->checkpoint.notes, r->checkpoint.bytes);
	journal_begin(&r->journal, r->checkpoint.bytes, buf_slice(&r->log.pending),
	        r->log.end < 0 ? 0 : r->log.end);
	r->checkpoint.begun = true;
}

/* The next recorder may be given this file while it is still empty. */
void checkpoint_mark(struct recorder *r)
{
	uint8_t mark[CHAIN_MARK_BYTES];

	if (r->log.end != 0 || !r->log.chain.last.has_previous)
		return;
	chain_mark(&r->log.chain, mark);
	journal_set_mark(&r->journal, slice_of(mark, sizeof(mark)));
}

void checkpoint_commit(struct recorder *r)
{
	struct stream *s;

	journal_commit(&r->journal);
	r->checkpoint.begun = false;
	memcpy(r->head, r->log.chain.last.hash, sizeof(r->head));
	if (r->log.end > 0 && journal_mark(&r->journal).n)
		journal_set_mark(&r->journal, SLICE(""));
	DL_FOREACH2(r->awake, s, awake_next)
	stream_acknowledge(s);
}
