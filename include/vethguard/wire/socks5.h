/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socks5: parses what a client of SOCKS version 5 sends (RFC 1928): the greeting with its methods, a user and password
 * if that method was chosen (RFC 1929), then the request, whose command is CONNECT or UDP ASSOCIATE; and the header of
 * each datagram of an association. Also the client's side of an association: writes its requests, and parses the
 * server's answers. Pure.
 */
#ifndef VETHGUARD_WIRE_SOCKS5_H
#define VETHGUARD_WIRE_SOCKS5_H

#include "vethguard/base/cursor.h"
#include "vethguard/base/ip.h"

#define SOCKS5_VERSION 5
#define SOCKS5_NO_AUTHENTICATION 0x00
#define SOCKS5_PASSWORD 0x02
#define SOCKS5_NO_METHOD 0xff
#define SOCKS5_LOGIN_VERSION 1 /* RFC 1929 */
#define SOCKS5_LOGIN_MAX (3 + 2 * 255)
#define SOCKS5_LOGIN_WRONG 1
#define SOCKS5_GREETING_MAX 257 /* bytes: version, count, 255 methods */
#define SOCKS5_NAME_MAX 255
#define SOCKS5_REQUEST_MAX (4 + 1 + SOCKS5_NAME_MAX + 2)
#define SOCKS5_ANSWER_BYTES 10                              /* with an IPv4 address */
#define SOCKS5_ANSWER_MAX 22                                /* with an IPv6 address */
#define SOCKS5_HEADER_MAX (3 + 1 + 1 + SOCKS5_NAME_MAX + 2) /* bytes before a datagram's payload */
#define SOCKS5_TOKEN_MAX (2 * 255)                          /* bytes of a token that fits into user and password */
#define SOCKS5_ASK_MAX (3 + SOCKS5_LOGIN_MAX + 10)          /* greeting, login and request of a client */
#define SOCKS5_ANSWERS_MAX (2 + 2 + SOCKS5_ANSWER_MAX)      /* what a server answers to these */

/* Replies (RFC 1928 section 6) that are used here. */
enum socks5_reply {
	SOCKS5_SUCCEEDED = 0,
	SOCKS5_FAILURE = 1,     /* "general SOCKS server failure" */
	SOCKS5_NOT_ALLOWED = 2, /* "connection not allowed by ruleset" */
	SOCKS5_NO_COMMAND = 7,
	SOCKS5_NO_ADDRESS_TYPE = 8
};

enum socks5_command { SOCKS5_CONNECT = 1, SOCKS5_UDP_ASSOCIATE = 3 };

enum socks5_status {
	SOCKS5_DONE,
	SOCKS5_MORE, /* valid so far but incomplete: read on */
	SOCKS5_BAD   /* refused; why says for what */
};

struct socks5_greeting {
	bool no_authentication; /* the client offers it */
	bool password;          /* the client offers user and password (RFC 1929) */
	size_t used;            /* bytes of the greeting */
	const char *why;        /* static */
};

struct socks5_login {
	struct slice user, password; /* borrowed from the input; the password is a secret */
	size_t used;                 /* bytes of the login */
	const char *why;             /* static */
};

struct socks5_request {
	enum socks5_command command; /* set with SOCKS5_DONE */
	struct slice name;           /* as sent, borrowed from the input; empty: an address */
	struct ip address;
	uint16_t port;           /* 0 only with SOCKS5_UDP_ASSOCIATE: the client does not know its port */
	size_t used;             /* bytes of the request */
	enum socks5_reply reply; /* SOCKS5_BAD: what to answer */
	const char *why;         /* static */
};

/* The header of a datagram (RFC 1928 section 7). */
struct socks5_header {
	struct slice name; /* as sent, borrowed from the input; empty: an address */
	struct ip address;
	uint16_t port; /* never 0 */
	size_t used;   /* bytes of the header; the payload follows */
};

/* Parse the n bytes received so far. What follows the greeting or the request is left alone. */
enum socks5_status socks5_greeting_parse(const uint8_t *p, size_t n, struct socks5_greeting *out);
enum socks5_status socks5_login_parse(const uint8_t *p, size_t n, struct socks5_login *out);
enum socks5_status socks5_request_parse(const uint8_t *p, size_t n, struct socks5_request *out);

/* Writes the answer to a request. The address it names is 0.0.0.0: from where the connection is
 * made is nothing that the client needs to know. */
void socks5_answer(enum socks5_reply reply, uint8_t out[SOCKS5_ANSWER_BYTES]);
/* Writes the answer to an accepted UDP ASSOCIATE: the address and port to which the client sends its datagrams. Returns
 * the answer's size. */
size_t socks5_answer_association(const struct ip *address, uint16_t port, uint8_t out[SOCKS5_ANSWER_MAX]);

/* Writes all that a client sends for an association: a greeting that offers only a password, a login with the token,
 * and the request, which announces no port. The password is the token. A token of more than 255 bytes is split: the
 * user is its first 255 bytes. Returns the size, or 0 if the token is empty or longer than SOCKS5_TOKEN_MAX. Wipe out
 * afterwards. */
size_t socks5_ask_association(struct slice token, uint8_t out[SOCKS5_ASK_MAX]);

/* A server's answers to these. */
struct socks5_association {
	struct ip address; /* to which datagrams are sent */
	uint16_t port;     /* never 0 with SOCKS5_DONE */
	size_t used;       /* bytes of the answers */
	bool login_wrong;  /* SOCKS5_BAD: the server does not take the token */
	uint8_t reply;   /* SOCKS5_BAD: the server's reply to the request; 0: it gave none, or its answers are malformed
	                  */
	const char *why; /* SOCKS5_BAD: static */
};
enum socks5_status socks5_association_parse(const uint8_t *p, size_t n, struct socks5_association *out);

/* Parses the header of a whole datagram. Returns false if the caller has to drop the datagram: it is truncated, is a
 * fragment, has reserved bytes that are not 0, or names no destination. */
bool socks5_header_parse(const uint8_t *p, size_t n, struct socks5_header *out);
/* Writes the header of a datagram for the client: where the datagram comes from, as the client has named it (name, or
 * address if name is empty). Returns the header's size. */
size_t socks5_header_write(struct slice name, const struct ip *address, uint16_t port, uint8_t out[SOCKS5_HEADER_MAX]);

#endif
