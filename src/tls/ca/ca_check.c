/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of a CA that others have signed. What people get wrong most often is checked by its
 * own name. Then the CA signs an intermediate and a leaf on trial, and the chain is verified as a
 * client would verify it that trusts the root alone: so nothing that a certificate may hold (a
 * shorter path further above, an extended key usage, a foreign root of the same name) is found by
 * sandboxes first.
 */
#include "tls/ca/ca_private.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <time.h>

#include "tls/ca/ca_pem.h"
#include "vethguard/base/clock.h"

#define TRIAL_HOST "example.com"
#define DAY_S 86400

static const char *day(int64_t at_s, char out[32])
{
	time_t t = (time_t)at_s;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		out[0] = 0;
	return out;
}

/* Returns the index of the certificate that issued x509, or -1. */
static int issuer_in(const struct ca_papers *papers, X509 *x509)
{
	for (size_t i = 0; i < papers->count; i++) {
		X509 *above = tls_x509_parse(papers->der[i], papers->lengths[i]);
		EVP_PKEY *key = above ? X509_get0_pubkey(above) : NULL;
		bool is = key && X509_check_issued(above, x509) == X509_V_OK &&
		          X509_verify(x509, key) == 1;

		X509_free(above);
		if (is)
			return (int)i;
	}
	return -1;
}

static bool is_in(const struct ca_papers *papers, struct slice der)
{
	for (size_t i = 0; i < papers->count; i++)
		if (slice_equals(ca_paper(papers, i), der))
			return true;
	return false;
}

static int no_way(struct slice last, char why[CA_WHY_MAX])
{
	struct ca_description d;

	ca_describe(last, &d);
	if (d.is_self_signed)
		ca_refuse(why,
		        "it chains to %.200s, which is not the root given; sign with the "
		        "root that sandboxes trust, or name this one as root",
		        d.subject);
	else
		ca_refuse(why,
		        "the issuer of %.200s is not there; add the certificates above it "
		        "to the file, up to the root",
		        d.subject);
	return -EBADMSG;
}

int ca_chain(struct slice certificate, const struct ca_papers *papers,
        const struct ca_papers *roots, struct ca_papers *chain, struct ca_papers *root,
        char why[CA_WHY_MAX])
{
	struct slice last = certificate;

	chain->count = root->count = 0;
	while (!is_in(roots, last)) {
		X509 *x509 = tls_x509_parse((const uint8_t *)last.p, last.n);
		int at = x509 ? issuer_in(roots, x509) : -1;
		const struct ca_papers *from = at >= 0 ? roots : papers;

		if (at < 0 && x509)
			at = issuer_in(papers, x509);
		X509_free(x509);
		ERR_clear_error();
		if (at < 0 || is_in(chain, ca_paper(from, (size_t)at)) ||
		        slice_equals(last, ca_paper(from, (size_t)at)))
			return no_way(last, why);
		last = ca_paper(from, (size_t)at);
		if (from == roots)
			break;
		if (chain->count == CA_CHAIN_MAX - 1) {
			ca_refuse(why, "more than %d certificates are between it and the root",
			        CA_CHAIN_MAX - 1);
			return -EBADMSG;
		}
		ca_papers_add(chain, last);
	}
	ca_papers_add(root, last);
	return 0;
}

static int check_fields(X509 *x509, char why[CA_WHY_MAX])
{
	const int64_t now_s = clock_real_ms() / 1000;
	const int64_t from_s = ca_time_s(X509_get0_notBefore(x509));
	const int64_t until_s = ca_time_s(X509_get0_notAfter(x509));
	const long path = X509_get_pathlen(x509);
	char text[32];

	if (path == 0)
		ca_refuse(why, "the certificate has pathlen 0, and sandboxes' intermediates are "
		               "one step below it; sign with "
		               "basicConstraints=critical,CA:TRUE,pathlen:1");
	else if (!X509_get0_subject_key_id(x509))
		ca_refuse(why, "the certificate has no subject key identifier; sign with "
		               "subjectKeyIdentifier=hash");
	else if (from_s > now_s)
		ca_refuse(why,
		        "the certificate is valid only from %s on; look at this machine's "
		        "clock, or wait",
		        day(from_s, text));
	else if (until_s <= now_s)
		ca_refuse(why, "the certificate has ended at %s; have it signed anew",
		        day(until_s, text));
	else
		return 0;
	return -EBADMSG;
}

/* Verifies the leaf as a client that knows only root. Returns an X509_V_ error. */
static int verify(X509 *leaf, STACK_OF(X509) * chain, X509 *root, unsigned long flags)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new_ex(tls_library(), NULL);
	int rc = X509_V_ERR_OUT_OF_MEM;

	if (store && ctx && X509_STORE_add_cert(store, root) == 1 &&
	        X509_STORE_CTX_init(ctx, store, leaf, chain) == 1) {
		X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
		X509_STORE_CTX_set_flags(ctx, flags);
		rc = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
	}
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	return rc;
}

static int decide(int error, int strict_error, char why[CA_WHY_MAX], char note[CA_WHY_MAX])
{
	const bool named =
	        error == X509_V_ERR_PERMITTED_VIOLATION || error == X509_V_ERR_EXCLUDED_VIOLATION;

	if (error == X509_V_ERR_PATH_LENGTH_EXCEEDED) {
		ca_refuse(why,
		        "the path length of a CA above it leaves no room for it and for "
		        "sandboxes' intermediates below it: the root needs pathlen:2 or more, "
		        "or none");
		return -EBADMSG;
	}
	if (error != X509_V_OK && !named) {
		ca_refuse(why, "a client that trusts the root refuses what is signed here: %s",
		        X509_verify_cert_error_string(error));
		return -EBADMSG;
	}
	if (named)
		ca_refuse(note, "the CA has name constraints: clients refuse every other name, "
		                "also where vethguard would say why it is denied");
	else if (strict_error != X509_V_OK)
		ca_refuse(note, "strict clients (Python 3.13) will refuse it: %s",
		        X509_verify_cert_error_string(strict_error));
	return 0;
}

static int try_leaf(const struct ca *ca, struct ca *trial, const struct ca_papers *chain,
        X509 *root, char why[CA_WHY_MAX], char note[CA_WHY_MAX])
{
	struct ca *below =
	        trial ? trial : ca_new_intermediate(ca, SLICE(CA_TRIAL_NAME), CA_TRIAL_DAYS);
	struct ca_leaf_key *key = ca_leaf_key_new(TLS_KEY_ECDSA);
	struct tls_identity *leaf = NULL;
	struct slice above[CA_CHAIN_MAX];
	int rc = -EBADMSG;

	above[0] = ca_certificate_der(ca);
	for (size_t i = 0; i < chain->count && i < CA_CHAIN_MAX - 1; i++)
		above[i + 1] = ca_paper(chain, i);
	if (below && key && ca_set_chain(below, above, chain->count + 1) == 0)
		leaf = ca_leaf_new(below, key, SLICE(TRIAL_HOST), NULL);
	if (leaf)
		rc = decide(verify(leaf->leaf, leaf->chain, root, 0),
		        verify(leaf->leaf, leaf->chain, root, X509_V_FLAG_X509_STRICT), why, note);
	else
		ca_refuse(why, "it cannot sign: its time is nearly over, or there is no memory");
	tls_identity_release(leaf);
	ca_leaf_key_free(key);
	ca_free(below);
	return rc;
}

int ca_check(const struct ca *ca, struct ca *trial, const struct ca_papers *chain,
        struct slice root, char why[CA_WHY_MAX], char note[CA_WHY_MAX])
{
	X509 *anchor = tls_x509_parse((const uint8_t *)root.p, root.n);
	int rc = -EBADMSG;

	note[0] = 0;
	if (!anchor)
		ca_refuse(why, "the root is damaged");
	else if (!(X509_get_extension_flags(anchor) & EXFLAG_SS))
		ca_refuse(why, "the root given is not signed by itself: name the root at the top, "
		               "and put what is between into the certificate's file");
	else
		rc = check_fields(ca->certificate, why);
	if (!rc)
		rc = try_leaf(ca, trial, chain, anchor, why, note);
	else
		ca_free(trial);
	if (!rc && !note[0] &&
	        ca_time_s(X509_get0_notBefore(ca->certificate)) > clock_real_ms() / 1000 - DAY_S)
		ca_refuse(note, "the certificate is younger than a day: clients whose clocks are "
		                "behind by more than its age refuse it until then");
	X509_free(anchor);
	ERR_clear_error();
	return rc;
}
