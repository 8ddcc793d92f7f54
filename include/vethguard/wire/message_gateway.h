/* SPDX-License-Identifier: Apache-2.0 */
/* message_gateway: the fields of the messages between supervisor and gateway, and of the message to a worker that
 * follows. */
#ifndef VETHGUARD_WIRE_MESSAGE_GATEWAY_H
#define VETHGUARD_WIRE_MESSAGE_GATEWAY_H

#include "vethguard/policy/config.h"
#include "vethguard/wire/message_type.h"

/* The protocol on a connection that the gateway passes to a worker. */
enum message_form {
	MESSAGE_FORM_PROXY = 0,     /* what clients send to an explicit proxy: HTTP or SOCKS5 */
	MESSAGE_FORM_BASE_PATH = 1, /* requests in absolute-form, of clients that see the host in their URL's path */
	MESSAGE_FORM_BASE_NAME = 2, /* the same, of clients that see a name of the gateway in place of the host */
	/* Requests in absolute-form that another proxy asks about (wire/callback.h). The worker does not send them, but
	 * answers whether the proxy may send them, and with which fields. */
	MESSAGE_FORM_CHECK = 3,         /* the answer's fields are the fields to add */
	MESSAGE_FORM_CHECK_HEAD = 4,    /* the same, of requests whose body the proxy does not tell */
	MESSAGE_FORM_CALLBACK = 5,      /* the answer's body has the fields to add, as JSON */
	MESSAGE_FORM_CALLBACK_HEAD = 6, /* the same, of requests whose body the proxy does not tell */
	MESSAGE_FORM_COUNT
};
static inline bool message_form_is_base(enum message_form form)
{
	return form == MESSAGE_FORM_BASE_PATH || form == MESSAGE_FORM_BASE_NAME;
}
static inline bool message_form_is_asked(enum message_form form)
{
	return form >= MESSAGE_FORM_CHECK;
}
static inline bool message_form_tells_body(enum message_form form)
{
	return form != MESSAGE_FORM_CHECK_HEAD && form != MESSAGE_FORM_CALLBACK_HEAD;
}

struct message_gateway_base {         /* a name of the gateway that stands for a host */
	struct slice name, authority; /* canonical; authority: host, or host:port */
	bool https;
};

#define MESSAGE_TOKEN_HASH_BYTES 32
#define MESSAGE_FROM_MAX 16 /* networks that a session's connections may come from */

struct message_gateway_start {
	uint8_t log_level;
	bool has_certificate, client_certificates;
	uint32_t unauthenticated, unauthenticated_per_address; /* connections at a time */
	uint32_t handshake_ms; /* from a connection's first moment until it has proved its session */
	size_t listener_count;
	enum config_gateway_kind listener_kind[CONFIG_GATEWAY_LISTENERS_MAX];
	size_t base_count;
	struct message_gateway_base bases[CONFIG_GATEWAY_BASES_MAX];
	size_t balancer_count;
	struct ip_prefix balancers[CONFIG_BALANCERS_MAX];
};

struct message_gateway_session {
	uint64_t sandbox_id;
	struct slice
	        token_hash; /* SHA-256, MESSAGE_TOKEN_HASH_BYTES; empty: its clients show signed tokens, or nothing */
	size_t from_count;  /* 0: from anywhere */
	struct ip_prefix from[MESSAGE_FROM_MAX];
	bool by_address;    /* a client's address proves it: token_hash is empty, and from is not */
	bool callback;      /* its clients are proxies that ask about requests, and no others */
	uint64_t admission; /* changes when earlier proofs become invalid */
};

struct message_gateway_session_end {
	uint64_t sandbox_id;
};

/* A client's connection that is handed over whole, with its descriptor: the worker goes on where the gateway has
 * stopped. Secret: the receiver wipes the datagram. */
enum message_handed {
	MESSAGE_HANDED_NOT = 0,   /* it stays with the gateway, which relays */
	MESSAGE_HANDED_PROXY = 1, /* it begins like every connection to an explicit proxy */
	/* SOCKS5: the client's request comes next. */
	MESSAGE_HANDED_SOCKS = 2,
	MESSAGE_HANDED_SOCKS_LOGIN = 3, /* the same, and the client waits for the answer to its login (RFC 1929) */
	/* Transparent TLS: `first` is a request of SOCKS5 that the gateway has written, and then the client's bytes.
	 * The client sees no answer of SOCKS5, but an alert of TLS if the request is refused. */
	MESSAGE_HANDED_TRANSPARENT = 4,
	MESSAGE_HANDED_COUNT
};
#define MESSAGE_FIRST_MAX 32768 /* bytes that the gateway has received or written, and that the worker reads first */
#define MESSAGE_TRAFFIC_SECRET_MAX 48
struct message_handover {
	enum message_handed handed; /* MESSAGE_HANDED_NOT: all other fields are empty */
	struct slice first;
	/* The state of the client's TLS, as in struct tls_state (tls/tls.h). Both empty: the client speaks no TLS. */
	struct slice reading, writing;
	uint8_t suite;
	uint64_t reading_next, writing_next;
};

struct message_gateway_enter { /* + fd: the client's connection, if it is handed over */
	uint64_t sandbox_id;
	struct ip source; /* the client's address */
	uint16_t source_port;
	struct ip reached; /* the gateway's address to which the client may send datagrams; family 0: none */
	enum message_form form;
	uint64_t admission; /* as in struct message_gateway_session, when the connection was proved */
	struct message_handover handover;
};

struct message_gateway_entered { /* + fd if entered, unless the connection was handed over */
	bool entered;            /* false: no worker serves the session at the moment */
};

struct message_gateway_guesses { /* tells that an address has shown wrong proofs */
	struct ip source;
	uint64_t count; /* since the last such message about this address */
};

#define MESSAGE_SIGNED_TOKEN_MAX 4096
#define MESSAGE_KEY_SET_MAX 16
#define MESSAGE_KEY_ID_MAX 255
#define MESSAGE_PUBLIC_KEY_MAX 512

struct message_public_key { /* as struct public_key (tls/signed_token.h) */
	enum config_algorithm algorithm;
	struct slice id, bytes;
	uint32_t exponent;
};

/* A signer of tokens. All signers come in the order of index, whenever one of them changes. */
struct message_gateway_signer {
	uint32_t index, count; /* count: how many there are; 0: none, and nothing follows */
	struct slice issuer;
	size_t audience_count;
	struct slice audiences[CONFIG_AUDIENCES_MAX];
	uint8_t algorithms;
	uint32_t lifetime_s;
	bool callbacks; /* as in struct config_terms */
	size_t key_count;
	struct message_public_key keys[MESSAGE_KEY_SET_MAX];
};

struct message_gateway_token { /* a token that the gateway has verified; secret: the receiver wipes the datagram */
	struct ip source;
	struct slice text;
};

enum message_verdict {
	MESSAGE_TOKEN_REFUSED = 0,
	MESSAGE_TOKEN_ACCEPTED = 1,
	MESSAGE_TOKEN_LATER = 2, /* its session is being made: ask again */
	MESSAGE_VERDICTS
};
struct message_gateway_verdict {
	enum message_verdict verdict;
	uint64_t sandbox_id; /* ACCEPTED: its session */
	uint64_t expires_s;  /* ACCEPTED: Unix time */
};

struct message_worker_enter {
	struct ip source;
	uint16_t source_port;
	struct ip reached; /* as in struct message_gateway_enter */
	enum message_form form;
	struct message_handover handover;
};

struct message_worker_associate {
	struct ip at; /* the address that a connection has reached */
};
struct message_worker_associated {
	uint16_t port;     /* of the socket; 0: there is no socket */
	struct ip address; /* where the client sends its datagrams, with port */
};

MESSAGE_CODEC(gateway_start);
MESSAGE_CODEC(gateway_session);
MESSAGE_CODEC(gateway_session_end);
MESSAGE_CODEC(gateway_enter);
MESSAGE_CODEC(gateway_entered);
MESSAGE_CODEC(gateway_guesses);
MESSAGE_CODEC(gateway_signer);
MESSAGE_CODEC(gateway_token);
MESSAGE_CODEC(gateway_verdict);
MESSAGE_CODEC(worker_enter);
MESSAGE_CODEC(worker_associate);
MESSAGE_CODEC(worker_associated);

#endif
