/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle: where systems keep a file of all trusted CAs, and what is needed to add a certificate to the trust stores
 * that programs read: the name of its link in a hashed directory (openssl-rehash(1)), its DER form, and the digest at
 * the end of a Java keystore.
 */
#ifndef VETHGUARD_TLS_BUNDLE_H
#define VETHGUARD_TLS_BUNDLE_H

#include "vethguard/base/buf.h"

#define BUNDLE_HASH_TEXT 9 /* eight hex digits and NUL */
#define BUNDLE_SHA1_BYTES 20

/* Where distributions keep a file (PEM) of all trusted CAs: Debian, Fedora, openSUSE, Alpine, Arch, and programs
 * built from source. In search order; ends with NULL. */
extern const char *const bundle_paths[];
/* Returns the first of these paths that is a readable file, as a borrowed constant; NULL: none. */
const char *bundle_system_path(void);
/* Subject hash of the first certificate in pem, with which OpenSSL 1.0.0 and later name the links in hashed
 * directories. Returns 0; -EBADMSG if there is no valid certificate. */
int bundle_subject_hash(struct slice pem, char out[BUNDLE_HASH_TEXT]);
/* Takes the next certificate off *pem and appends its DER to out. Blocks that are no certificates, or that do not
 * decode, are skipped. Returns 0; -ENOENT if there are no more; -ENOBUFS if there is no room or no memory. */
int bundle_next(struct slice *pem, struct buf *out);
/* SHA-1 of the concatenated parts: not for security, the keystore format requires it. Returns 0 or -EIO. */
int bundle_sha1(const struct slice *parts, size_t count, uint8_t out[BUNDLE_SHA1_BYTES]);

#endif
