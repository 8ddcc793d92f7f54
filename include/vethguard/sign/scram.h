/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scram: the client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677): a proof that its owner knows a password, which is
 * never sent. Pure but for the nonce. The calls go in this order: begin, challenge, derive until it is done, finish,
 * verify.
 */
#ifndef VETHGUARD_SIGN_SCRAM_H
#define VETHGUARD_SIGN_SCRAM_H

#include "vethguard/base/buf.h"
#include "vethguard/sign/hmac.h"

#define SCRAM_NONCE 24        /* characters of our nonce */
#define SCRAM_SERVER_MAX 1024 /* bytes of the server's first message */
#define SCRAM_SALT_MAX 64     /* bytes */
/* Iterations that a server may ask for. With fewer, guessing from a proof is cheap (RFC 7677 section 4). */
#define SCRAM_ROUNDS_MIN 4096
#define SCRAM_ROUNDS_MAX 1000000
#define SCRAM_BINDING_MAX 64 /* bytes of the certificate's hash */
#define SCRAM_FINAL_MAX 1536 /* bytes of the client's final message */

/* What the client says about binding the login to the TLS connection. */
enum scram_binding {
	SCRAM_NOT_SUPPORTED, /* "n": this client cannot */
	SCRAM_NOT_OFFERED,   /* "y": it could, and the server has not offered it */
	SCRAM_BOUND          /* "p=tls-server-end-point" (RFC 5929 section 4) */
};

struct scram {
	struct secret secret; /* keys, as they are derived */
	char nonce[SCRAM_NONCE];
	enum scram_binding binding;
	uint8_t end_point[SCRAM_BINDING_MAX];
	size_t end_point_n;
	char server[SCRAM_SERVER_MAX]; /* the server's first message */
	size_t server_n, full_n;       /* full_n: bytes of the whole nonce in it */
	uint8_t salt[SCRAM_SALT_MAX];
	size_t salt_n;
	uint32_t rounds, done; /* iterations: in all, and so far */
};

/* Makes a nonce. end_point: the hash of the server's certificate, for SCRAM_BOUND. Returns 0 or -errno. */
int scram_begin(struct scram *s, enum scram_binding binding, struct slice end_point);
void scram_end(struct scram *s);
/* The client's first message into out (bound: SCRAM_FINAL_MAX). Returns its bytes. */
size_t scram_first(const struct scram *s, char out[SCRAM_FINAL_MAX]);
/* Takes the server's first message. Returns NULL, or what is wrong with it (static). */
const char *scram_challenge(struct scram *s, struct slice message);
/* Goes on with the key of the password by at most `rounds` iterations. Returns 1: done; 0: call again; or -errno. */
int scram_derive(struct scram *s, struct hmac *hmac, struct slice password, uint32_t rounds);
/* The client's final message, with its proof, into out. Returns its bytes or -errno. */
int scram_finish(struct scram *s, struct hmac *hmac, char out[SCRAM_FINAL_MAX]);
/* Takes the server's final message, which proves that the server knows the password's verifier too. Returns NULL, or
 * what is wrong with it (static). */
const char *scram_verify(const struct scram *s, struct slice message);

#endif
