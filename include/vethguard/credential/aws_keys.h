/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_keys: the keys that a credential by sigv4 signs with: an access key id, its secret and, if the source gives one,
 * a session token. All of them are in locked memory, and so is the key of the day that is derived from the secret.
 */
#ifndef VETHGUARD_CREDENTIAL_AWS_KEYS_H
#define VETHGUARD_CREDENTIAL_AWS_KEYS_H

#include "vethguard/sign/sigv4.h"

#define AWS_KEY_ID_MAX 128
#define AWS_SECRET_MIN 6 /* bytes */
#define AWS_TOKEN_MAX 8192

struct aws_keys {
	struct secret memory;            /* holds everything below */
	struct slice id, secret, token;  /* token: empty if there is none */
	uint8_t *day;                    /* HMAC_BYTES: the key for day_scope */
	char day_scope[SIGV4_SCOPE_MAX]; /* the scope that `day` is for; "": none yet */
};

/* Reads a value: "ID:SECRET", "ID:SECRET:TOKEN", or a JSON object as AWS's own tools and services write it (credential
 * processes, instance metadata, STS, AWS's engine of Vault). Returns NULL with *error set (static). */
struct aws_keys *aws_keys_new(struct slice value, const char **error);
void aws_keys_free(struct aws_keys *keys);
/* Returns the key for the scope's day, region and service, valid until the next call, or NULL if OpenSSL failed. */
const uint8_t *aws_keys_for(struct aws_keys *keys, struct hmac *hmac, const struct sigv4_scope *scope);

#endif
