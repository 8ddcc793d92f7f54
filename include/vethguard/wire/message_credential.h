/* SPDX-License-Identifier: Apache-2.0 */
/* message_credential: what keeper, worker and supervisor send each other about credentials and where they come
 * from. */
#ifndef VETHGUARD_WIRE_MESSAGE_CREDENTIAL_H
#define VETHGUARD_WIRE_MESSAGE_CREDENTIAL_H

#include "vethguard/wire/message_type.h"

struct message_credential_get {
	uint32_t credential; /* index in the policy */
	uint64_t generation; /* generation of that policy */
	bool renew;          /* the worker has a valid value and wants the next one */
};

struct message_credential { /* the reply; value is secret: the receiver wipes the datagram */
	uint32_t credential;
	bool available;
	uint32_t ttl_ms;    /* 0: does not expire */
	uint32_t renew_ms;  /* after that the worker asks for the next value, and uses this one meanwhile; 0: never */
	struct slice value; /* if available */
	struct slice error; /* if not available: one sentence without any byte of the value */
};

enum { MESSAGE_SEALED_MAX = 8192, MESSAGE_SEALED_END_MAX = 192 }; /* bytes, as JAR_TOKEN_MAX and JAR_END_MAX */
struct message_credential_seal {       /* the value is secret; jwt, end: as in struct jar_token (credential/jar.h) */
	struct slice name, end, value; /* name: of the credential, since numbers may just be changing */
	bool jwt;
};

/* The worker wants its credential's key, which is in a token, to sign the digest of its side of a TLS handshake. */
struct message_credential_sign {
	uint32_t credential; /* index in the policy */
	uint64_t generation; /* generation of that policy */
	uint16_t scheme;     /* enum message_scheme, but not ANY */
	struct slice digest;
};

/* What an operator wants. The keeper does it before the workers: a worker forgets a value only after the keeper has
 * stopped giving it out. */
enum message_credential_what {
	MESSAGE_CREDENTIAL_LOOK = 0,   /* only tells what is known */
	MESSAGE_CREDENTIAL_CHECK = 1,  /* keeper: fetches a value; it is kept only where none is held */
	MESSAGE_CREDENTIAL_ROTATE = 2, /* keeper: fetches a value and holds it; worker: forgets the one before */
	MESSAGE_CREDENTIAL_REVOKE = 3, /* keeper: wipes the value and gives out none; worker: also ends what uses it */
	MESSAGE_CREDENTIAL_FORGET = 4, /* keeper: wipes the value and fetches another one on demand */
	MESSAGE_CREDENTIAL_WHATS
};
struct message_credential_ask {
	uint64_t sandbox_id; /* to the keeper: the sandbox's id; to a worker: 0 */
	uint64_t generation;
	uint8_t what;
	uint32_t credential; /* LOOK: 0 */
};

struct message_worker_credentials {
	uint64_t ended; /* REVOKE: requests that were ended */
	uint32_t count; /* 0: the worker has a policy of another generation */
	struct {
		uint64_t uses;         /* how many requests got the value since the worker's start */
		uint64_t last_used_ms; /* Unix time; 0: never */
	} credentials[POLICY_CREDENTIALS_MAX];
};

#define MESSAGE_CREDENTIAL_MARK_BYTES 8
#define MESSAGE_CREDENTIAL_ERROR_MAX 255
struct message_keeper_credentials {
	struct slice error; /* why CHECK or ROTATE failed, one sentence; empty: it succeeded */
	struct slice mark;  /* CHECK, ROTATE: of the value that was fetched; empty: nothing was fetched */
	uint32_t ttl_s;     /* how long that value may be used; 0: for ever */
	uint32_t count;
	struct {
		bool held, fetching, revoked;
		uint32_t fetches, failures;
		uint64_t fetched_ms, ends_ms, failed_ms; /* Unix time; 0: never */
		struct slice error;                      /* why the last fetch failed, or empty */
		/* MAC of the held value under a key that only this keeper has, of MESSAGE_CREDENTIAL_MARK_BYTES. Marks
		 * tell whether two values are the same, and help nobody to guess one. Empty: no value is held. */
		struct slice mark;
	} credentials[POLICY_CREDENTIALS_MAX];
};

struct message_source_open {
	uint64_t sandbox_id;
	uint32_t credential;
	uint64_t generation;
	bool renew;   /* the keeper holds a valid value; extending its life is as good as another value */
	bool discard; /* the fetched value will not be used: an operator checks the source while another value is in use
	               */
};

struct message_source {
	bool opened;        /* true: one fd comes with it */
	bool same;          /* nothing was opened: the value that the keeper holds may be used for ttl_s from now on */
	uint32_t ttl_s;     /* if opened: how long the value may be used; 0: as the policy says */
	uint32_t retry_s;   /* with an error: how long to wait before asking again; 0: as usual */
	struct slice error; /* empty: the sandbox is ending, which is not a fault */
};

MESSAGE_CODEC(credential_get);
MESSAGE_CODEC(credential_seal);
MESSAGE_CODEC(credential);
MESSAGE_CODEC(credential_sign);
MESSAGE_CODEC(credential_ask);
MESSAGE_CODEC(worker_credentials);
MESSAGE_CODEC(keeper_credentials);
MESSAGE_CODEC(source_open);
MESSAGE_CODEC(source);

#endif
