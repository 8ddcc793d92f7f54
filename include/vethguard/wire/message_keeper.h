/* SPDX-License-Identifier: Apache-2.0 */
/* message_keeper: what the keeper exchanges with supervisor and workers about sandboxes, certificates and CAs. */
#ifndef VETHGUARD_WIRE_MESSAGE_KEEPER_H
#define VETHGUARD_WIRE_MESSAGE_KEEPER_H

#include "vethguard/wire/message_type.h"

#define MESSAGE_CERTIFICATE_MAX 4096 /* DER */
#define MESSAGE_KEY_MAX 1024         /* PKCS#8 */
#define MESSAGE_CHAIN_MAX 3          /* certificates between an intermediate and its root */
#define MESSAGE_PEM_MAX 8192         /* of all roots that a sandbox is to trust */
#define MESSAGE_PAPERS_MAX 32768     /* PEM of certificates that an operator gives */
#define MESSAGE_CAS_MAX 4            /* CAs of a keeper: the current one and those that are still trusted */
#define MESSAGE_SUBJECT_MAX 255

struct message_ca {                /* DER; key is secret: the receiver wipes the datagram */
	struct slice root;         /* certificate */
	struct slice intermediate; /* certificate, signed by root, for this sandbox only */
	struct slice key;          /* intermediate's private key, PKCS#8 */
	size_t above_count;
	struct slice above[MESSAGE_CHAIN_MAX]; /* certificates between it and root, the one above it first */
};

#define MESSAGE_CA_NAMES_MAX 1200 /* CA_NAMES_MAX */
struct message_keeper_sandbox {
	uint64_t sandbox_id;  /* the worker's sandbox */
	uint64_t owner;       /* the sandbox, which may have several workers: they share what logins gave */
	uint64_t generation;  /* of the policy with these credentials */
	struct slice sandbox; /* name, for messages */
	struct slice names;   /* what its worker's CA may sign for (tls/ca_names.h); empty: anything */
	uint32_t credential_count;
	struct {
		struct slice name;
		uint32_t ttl_s;
		uint32_t timeout_ms;
		bool revoked;     /* an operator has revoked the credential */
		bool sealed;      /* its values come by CREDENTIAL_SEAL */
		struct slice key; /* pkcs11: URI of the key in a token that signs for it; empty: none */
	} credentials[POLICY_CREDENTIALS_MAX];
};

struct message_keeper_root {
	struct slice root_pem; /* the CA certificates that the sandbox is to trust, its own root first */
	struct slice root, ca; /* fingerprints: of the root that its worker's chain ends at, and of the CA that
	                          signed its worker's intermediate */
};

struct message_keeper_worker {
	struct slice root; /* fingerprint of the root that the sandbox knows; empty: the current one; zeros: the
	                      oldest there is. One that is not kept any more counts as the current one */
	bool waits;        /* it gets its CA only when its sandbox is told, which says what the CA may sign for */
};

enum message_ca_what {
	MESSAGE_CA_LOOK = 0,    /* tells only */
	MESSAGE_CA_CHECK = 1,   /* reads the configured files, renews and drops what is due */
	MESSAGE_CA_REQUEST = 2, /* makes a key and a request for a certificate (PKCS#10) */
	MESSAGE_CA_INSTALL = 3, /* takes the certificate for that key */
	MESSAGE_CA_ROTATE = 4,  /* a new root; or a new request; or new intermediates for all workers */
	MESSAGE_CA_WHATS
};
/* Bits of message_keeper_ca_ask.configured, and the order of the descriptors. */
#define MESSAGE_CA_ROOT_FILE 1u             /* PEM: the roots that are trusted */
#define MESSAGE_CA_CERTIFICATE_FILE 2u      /* PEM: the CA that signs, and what is above it; absent: the first root */
#define MESSAGE_CA_KEY_FILE 4u              /* PEM: its key; absent: certificates are installed */
#define MESSAGE_CA_TOKEN_KEY 8u             /* its key is in a token: no descriptor for it; excludes KEY_FILE */
#define MESSAGE_CA_OVERLAP_MAX_S 315360000u /* ten years */
struct message_keeper_ca_ask {
	uint8_t what;
	uint8_t configured;       /* CHECK */
	struct slice problem;     /* CHECK: why the configured files cannot be opened: none of them is sent */
	uint32_t overlap_s;       /* how long CAs that are replaced stay trusted */
	struct slice name;        /* REQUEST, ROTATE: common name for a request */
	struct slice certificate; /* INSTALL: PEM, with what is above it */
	struct slice root;        /* INSTALL: PEM; empty: the configuration's, or the one in certificate */
};

enum message_ca_origin { MESSAGE_CA_OWN = 0, MESSAGE_CA_INSTALLED = 1, MESSAGE_CA_CONFIGURED = 2, MESSAGE_CA_ORIGINS };
struct message_keeper_ca {
	bool changed;
	struct slice error;   /* one or more sentences; empty: it is done */
	struct slice notes;   /* what people should know, a line each */
	struct slice request; /* PEM of the request that waits for its certificate; empty: none */
	struct slice trusted; /* PEM of all roots that sandboxes are to trust */
	size_t count;         /* the first is the current one, unless unusable */
	bool unusable;        /* no CA can sign for new sandboxes: notes say why */
	bool trying; /* CHECK: reply to CHECK: the keeper is trying the token's key; KEEPER_TOKEN_SAYS follows */
	struct {
		uint8_t origin;
		struct slice fingerprint, root; /* of the CA and of its root, which may be the same */
		struct slice subject, root_subject;
		uint64_t from_s, until_s; /* validity; seconds since the epoch */
		uint64_t root_until_s;
		uint64_t retires_s; /* 0: the current one */
	} cas[MESSAGE_CAS_MAX];
};

MESSAGE_CODEC(ca);
MESSAGE_CODEC(keeper_sandbox);
MESSAGE_CODEC(keeper_root);
MESSAGE_CODEC(keeper_worker);
MESSAGE_CODEC(keeper_ca_ask);
MESSAGE_CODEC(keeper_ca);

#endif
