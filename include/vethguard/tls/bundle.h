/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle: where systems keep one file of every trusted CA, and what it takes to put one more
 * certificate into the trust stores that programs read: the name of its link in a hashed directory
 * (openssl-rehash(1)), its DER form, and the digest that closes a Java keystore.
 */
#ifndef VETHGUARD_TLS_BUNDLE_H
#define VETHGUARD_TLS_BUNDLE_H

#include "vethguard/base/buf.h"

#define BUNDLE_HASH_TEXT 9 /* eight hex digits and NUL */
#define BUNDLE_SHA1_BYTES 20

/* Where distributions keep a file (PEM) of every trusted CA: Debian, Fedora, openSUSE, Alpine, Arch
 * and what is built from source. In the order in which they are looked for; ends with NULL. */
extern const char *const bundle_paths[];
/* The first of them that is a file and can be read, as a borrowed constant; NULL: none. */
const char *bundle_system_path(void);
/* Subject hash of the first certificate in pem, as OpenSSL 1.0.0 and later name hashed directories.
 * 0; -EBADMSG: no certificate; -ENOMEM. */
int bundle_subject_hash(struct slice pem, char out[BUNDLE_HASH_TEXT]);
/* Takes the next certificate off *pem and appends its DER to out; blocks that are no certificate
 * are skipped, one that does not decode is too. 0; -ENOENT: no further one; -ENOBUFS or -ENOMEM. */
int bundle_next(struct slice *pem, struct buf *out);
/* SHA-1 of the parts one after another: not for security, the keystore format asks for it. 0 or
 * -EIO. */
int bundle_sha1(const struct slice *parts, size_t count, uint8_t out[BUNDLE_SHA1_BYTES]);

#endif
