/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal: the end of every line of the audit log, which chains it to the line before (OCSF profile record_integrity).
 *
 * A line is one JSON object that begins
 *     {"time":MS,"type_uid":N,"metadata":{"uid":"16 hex digits",...
 * and ends
 *     ,"attestation_list":[{"chain_uid":"32 hex digits"
 *     ,"prev_event":{"fingerprint":{"algorithm_id":3,"value":"64 hex digits"},"type_uid":N,"uid":"16 hex digits"}
 *     ,"fingerprint":{"algorithm":"SHA-256","algorithm_id":3,"serialization_id":1,"value":"64 hex digits"}}]}
 * (without the line breaks shown here; the first line of a chain has no prev_event). The fingerprint is SHA-256 of
 * the line's bytes without the member "fingerprint": everything before its comma, followed by SEAL_CLOSE. Pure.
 */
#ifndef VETHGUARD_WIRE_SEAL_H
#define VETHGUARD_WIRE_SEAL_H

#include "vethguard/base/buf.h"

#define SEAL_UID_DIGITS 16
#define SEAL_CHAIN_DIGITS 32
#define SEAL_HASH_DIGITS 64
#define SEAL_CLOSE "}]}"

/* A position in a chain: the line that the next one refers to. */
struct seal_link {
	char chain_uid[SEAL_CHAIN_DIGITS + 1];
	bool has_previous;
	uint64_t type_uid;
	char uid[SEAL_UID_DIGITS + 1];
	char hash[SEAL_HASH_DIGITS + 1];
};

struct seal {
	struct seal_link previous; /* what the line says about the line before */
	struct seal_link own;      /* what the next line has to say about this line */
	struct slice covered;      /* the hash covers these bytes, followed by SEAL_CLOSE */
};

/* Parses a line without its newline. Returns 0, or -EBADMSG if seal_append_* cannot have ended the line. The hash is
 * not checked. */
int seal_parse(struct slice line, struct seal *out);
/* Appends the attestation up to the place of the fingerprint. Returns 0, or an error of buf_append(). */
int seal_append_link(struct buf *out, const struct seal_link *previous);
/* Appends fingerprint, SEAL_CLOSE and newline. Returns 0, or an error of buf_append(). */
int seal_append_hash(struct buf *out, const char hash[SEAL_HASH_DIGITS]);

#endif
