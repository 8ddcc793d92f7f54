/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes: theory of operation
 *
 * Lines are made of what was read from rings, sockets and the supervisor, and whatever was read is
 * gone from there. So with each batch goes a note per sandbox: up to where its ring is read, its
 * sequence, the last event of the supervisor, what has been counted. Batch and notes become valid
 * together. Space in a ring is given back only behind a batch that is in the file.
 *
 * A recorder that takes over keeps the notes it found until the sandboxes are told to it one after
 * the other; those it has not been told of yet are carried along in its own.
 */
#include <errno.h>
#include <stdlib.h>

#include "vethguard/base/log.h"

#include "recorder/recorder.h"

struct note {
	uint64_t sandbox_id;
	uint64_t ring_position, sequence, told;
	uint64_t allowed, denied, failed, observed, dropped, findings, lines;
	uint32_t kinds; /* of packets: so many struct packets_kind follow */
	bool broken, packets_lost;
};

_Static_assert(RECORDER_PENDING_MAX <= JOURNAL_BATCH_MAX, "any batch fits into the journal");
_Static_assert(
        sizeof(struct note) + (PACKETS_MAX + 1) * sizeof(struct packets_kind) < JOURNAL_NOTES_MAX,
        "any sandbox's note fits into the journal");

/* Takes the next note off text. False: there is none, or what is there is none. */
static bool next_note(struct slice *text, struct note *note, struct slice *kinds)
{
	size_t n;

	if (text->n < sizeof(*note))
		return false;
	memcpy(note, text->p, sizeof(*note));
	*text = slice_of(text->p + sizeof(*note), text->n - sizeof(*note));
	if (note->kinds > PACKETS_MAX + 1)
		return false;
	n = note->kinds * sizeof(struct packets_kind);
	if (n > text->n)
		return false;
	*kinds = slice_of(text->p, n);
	*text = slice_of(text->p + n, text->n - n);
	return true;
}

static int keep_notes(struct recorder *r)
{
	struct slice notes = journal_notes(&r->journal);

	buf_init(&r->inherited, JOURNAL_NOTES_MAX);
	return buf_append_slice(&r->inherited, notes);
}

int notes_inherit(struct recorder *r)
{
	struct slice batch;
	off_t offset;
	int rc;

	if (journal_begun(&r->journal, &batch, &offset)) {
		rc = log_file_adopt(&r->log, batch, offset);
		if (rc < 0)
			return rc;
		r->begun = rc > 0;
		if (r->begun) {
			log_info(
			        "%zu bytes of a batch are still to be written", r->log.pending.len);
		} else {
			log_error("%s was changed by another program: its last lines are written "
			          "again",
			        r->log.path);
			journal_forget(&r->journal);
		}
	}
	return keep_notes(r);
}

static int apply(struct stream *stream, const struct note *note, struct slice kinds)
{
	struct packets_kind kind;

	stream->ocsf.sequence = note->sequence;
	stream->told = note->told;
	stream->summary.allowed = note->allowed;
	stream->summary.denied = note->denied;
	stream->summary.failed = note->failed;
	stream->summary.observed = note->observed;
	stream->summary.dropped = note->dropped;
	stream->summary.findings = note->findings;
	stream->summary.lines = note->lines;
	stream->broken = note->broken;
	stream->packets_lost = note->packets_lost;
	ring_seek(&stream->ring, note->ring_position);
	for (; kinds.n; kinds = slice_of(kinds.p + sizeof(kind), kinds.n - sizeof(kind))) {
		memcpy(&kind, kinds.p, sizeof(kind));
		if (packets_restore(&stream->packets, &kind) != 0)
			return -ENOMEM;
	}
	return 0;
}

int notes_apply(struct stream *stream)
{
	struct slice text = buf_slice(&stream->recorder->inherited), kinds;
	struct note note;

	while (next_note(&text, &note, &kinds))
		if (note.sandbox_id == stream->ocsf.uid)
			return apply(stream, &note, kinds);
	return 0;
}

/* Appends a stream's note. Bytes; 0: no room. */
static size_t write_note(const struct stream *s, uint8_t *out, size_t room)
{
	struct packets_kind *kinds = (struct packets_kind *)(void *)(out + sizeof(struct note));
	const struct summary *sum = &s->summary;
	struct note note = {
	        .sandbox_id = s->ocsf.uid,
	        .ring_position = s->ring.position,
	        .sequence = s->ocsf.sequence,
	        .told = s->told,
	        .allowed = sum->allowed,
	        .denied = sum->denied,
	        .failed = sum->failed,
	        .observed = sum->observed,
	        .dropped = sum->dropped,
	        .findings = sum->findings,
	        .lines = sum->lines,
	        .broken = s->broken,
	        .packets_lost = s->packets_lost,
	};

	if (room < sizeof(note))
		return 0;
	note.kinds =
	        (uint32_t)packets_save(&s->packets, kinds, (room - sizeof(note)) / sizeof(*kinds));
	memcpy(out, &note, sizeof(note));
	return sizeof(note) + note.kinds * sizeof(*kinds);
}

/* Notes of sandboxes that this recorder has not been told of. */
static size_t carry_along(struct recorder *r, uint8_t *out, size_t room)
{
	struct slice text = buf_slice(&r->inherited), kinds;
	struct note note;
	size_t n = 0;

	while (next_note(&text, &note, &kinds)) {
		if (stream_find(r, note.sandbox_id) || sizeof(note) + kinds.n > room - n)
			continue;
		memcpy(out + n, &note, sizeof(note));
		if (kinds.n)
			memcpy(out + n + sizeof(note), kinds.p, kinds.n);
		n += sizeof(note) + kinds.n;
	}
	return n;
}

void notes_begin(struct recorder *r)
{
	uint8_t *out = journal_spare(&r->journal);
	size_t n = 0;

	for (struct stream *s = r->streams; s; s = s->next)
		n += write_note(s, out + n, JOURNAL_NOTES_MAX - n);
	n += carry_along(r, out + n, JOURNAL_NOTES_MAX - n);
	journal_begin(&r->journal, n, buf_slice(&r->log.pending), r->log.end < 0 ? 0 : r->log.end);
	r->begun = true;
}

void notes_commit(struct recorder *r)
{
	journal_commit(&r->journal);
	r->begun = false;
	for (struct stream *s = r->streams; s; s = s->next) {
		ring_release(&s->ring);
		if (s->told != s->acknowledged)
			control_tell(r, MESSAGE_RECORDER_TAKEN, s->told, NULL);
		s->acknowledged = s->told;
	}
}
