/* SPDX-License-Identifier: Apache-2.0 */
/* elsewhere: the handshake of a client whose certificate's key is elsewhere (in a PKCS #11 token).
 * The handshake stops where the key has to sign, and goes on when the signature is there. */
#ifndef VETHGUARD_SRC_TLS_ELSEWHERE_H
#define VETHGUARD_SRC_TLS_ELSEWHERE_H

#include "tls/private.h"

#define ELSEWHERE_DIGEST_MAX 64

enum elsewhere_state {
	ELSEWHERE_IDLE,     /* the upstream has not asked for the certificate */
	ELSEWHERE_ASKED,    /* it has: the rest of the handshake runs in a job of OpenSSL's */
	ELSEWHERE_WAITING,  /* the job waits for the signature */
	ELSEWHERE_ANSWERED, /* the signature is there */
	ELSEWHERE_GIVEN_UP, /* it will not come */
	ELSEWHERE_STATE_COUNT
};

struct elsewhere {
	enum elsewhere_state state;
	uint16_t scheme;
	size_t digest_n, signature_n;
	uint8_t digest[ELSEWHERE_DIGEST_MAX], signature[TLS_SIGNATURE_MAX];
};

/* Returns the signature algorithms of OpenSSL's provider, of which RSA and ECDSA stop for a
 * signature from elsewhere. */
const OSSL_ALGORITHM *elsewhere_listen(const OSSL_ALGORITHM *all);
/* Returns false if this OpenSSL offers its algorithms in another way: then no such handshake is
 * possible. */
bool elsewhere_is_possible(void);
/* Presents a certificate whose key is elsewhere. Returns false on failure. */
bool elsewhere_present(struct tls *tls, struct tls_identity *identity);
/* Calls SSL_do_handshake(), for any connection. *waits: the handshake waits for a signature. */
int elsewhere_do_handshake(struct tls *tls, bool *waits);
/* Ends the job that waits, if there is one, and frees tls->elsewhere. Call before SSL_free(). */
void elsewhere_fini(struct tls *tls);

#endif
