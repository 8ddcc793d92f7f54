/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scram: the client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677): proves that the client knows a password without
 * sending it. Pure but for the nonce. The calls go in this order: begin, first, challenge, derive until it is done,
 * finish, verify, end.
 */
#ifndef VETHGUARD_SIGN_SCRAM_H
#define VETHGUARD_SIGN_SCRAM_H

#include "vethguard/base/buf.h"
#include "vethguard/sign/hmac.h"

#define SCRAM_NONCE 24        /* characters of our nonce */
#define SCRAM_SERVER_MAX 1024 /* bytes of the server's first message */
#define SCRAM_SALT_MAX 64     /* bytes */
/* Iterations that a server may ask for. Fewer make guessing from a proof cheap (RFC 7677 section 4). */
#define SCRAM_ROUNDS_MIN 4096
#define SCRAM_ROUNDS_MAX 1000000
#define SCRAM_BINDING_MAX 64 /* bytes of the certificate's hash */
#define SCRAM_FINAL_MAX 1536 /* bytes of the client's final message */

/* What the client says about binding the login to the TLS connection. */
enum scram_binding {
	SCRAM_NOT_SUPPORTED, /* "n": this client cannot bind */
	SCRAM_NOT_OFFERED,   /* "y": this client could bind, but the server has not offered it */
	SCRAM_BOUND          /* "p=tls-server-end-point" (RFC 5929 section 4) */
};

struct scram {
	struct secret secret; /* the keys so far: struct keys in scram.c */
	char nonce[SCRAM_NONCE];
	enum scram_binding binding;
	uint8_t end_point[SCRAM_BINDING_MAX];
	size_t end_point_n;
	char server[SCRAM_SERVER_MAX]; /* the server's first message */
	size_t server_n, full_n;       /* full_n: bytes of the client's and server's nonce in it */
	uint8_t salt[SCRAM_SALT_MAX];
	size_t salt_n;
	uint32_t rounds, done; /* iterations: in all, and so far */
};

/* Makes a nonce. end_point: the hash of the server's certificate (tls_server_end_point()), for SCRAM_BOUND. Returns 0
 * or -errno. */
int scram_begin(struct scram *s, enum scram_binding binding, struct slice end_point);
void scram_end(struct scram *s);
/* Writes the client's first message to out. Returns its length in bytes. */
size_t scram_first(const struct scram *s, char out[SCRAM_FINAL_MAX]);
/* Takes the server's first message. Returns NULL, or what is wrong with it (static). */
const char *scram_challenge(struct scram *s, struct slice message);
/* Computes at most `rounds` further iterations of the salted password. Returns 1: done; 0: call again; or -errno. */
int scram_derive(struct scram *s, struct hmac *hmac, struct slice password, uint32_t rounds);
/* Writes the client's final message, with its proof, to out. Returns its length in bytes, or -errno. */
int scram_finish(struct scram *s, struct hmac *hmac, char out[SCRAM_FINAL_MAX]);
/* Takes the server's final message, and verifies its proof that the server knows the password's verifier. Returns
 * NULL, or what is wrong with it (static). */
const char *scram_verify(const struct scram *s, struct slice message);

#endif
