/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PEM files of an operator (RFC 7468). They are read strictly: a damaged block is an error and not
 * skipped, because a bundle that lacks a certificate would be noticed only by clients. The base64
 * is decoded here, since a key's text must not stay in buffers of OpenSSL.
 */
#include "tls/ca/ca_private.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>

#include "tls/ca/ca_pem.h"
#include "vethguard/base/base64.h"

#define LABEL_MAX 32

void ca_refuse(char why[CA_WHY_MAX], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, CA_WHY_MAX, format, arguments);
	va_end(arguments);
}

static const char *find(struct slice in, struct slice what)
{
	return in.n < what.n ? NULL : memmem(in.p, in.n, what.p, what.n);
}

int ca_pem_next(struct slice *pem, struct ca_pem_block *block, uint8_t *out, size_t cap)
{
	static const struct slice begin = {"-----BEGIN ", 11}, dashes = {"-----", 5};
	const char *at = find(*pem, begin), *label_end, *end;
	char last[LABEL_MAX + 16];
	struct slice rest;
	ssize_t n;

	if (!at)
		return -ENOENT;
	rest = slice_of(at + begin.n, pem->n - (size_t)(at + begin.n - pem->p));
	label_end = find(rest, dashes);
	if (!label_end || label_end - rest.p > LABEL_MAX)
		return -EBADMSG;
	block->label = slice_of(rest.p, (size_t)(label_end - rest.p));
	snprintf(last, sizeof(last), "-----END %.*s-----", (int)block->label.n, block->label.p);
	rest = slice_of(label_end + dashes.n, rest.n - (size_t)(label_end + dashes.n - rest.p));
	end = find(rest, slice_from_string(last));
	if (!end)
		return -EBADMSG;
	n = base64_decode(slice_of(rest.p, (size_t)(end - rest.p)), BASE64_LINES, out, cap);
	block->n = n > 0 ? (size_t)n : 0;
	*pem = slice_of(end + strlen(last), rest.n - (size_t)(end + strlen(last) - rest.p));
	return 0;
}

bool ca_papers_add(struct ca_papers *papers, struct slice der)
{
	for (size_t i = 0; i < papers->count; i++)
		if (slice_equals(ca_paper(papers, i), der))
			return true;
	if (papers->count == CA_PAPERS_MAX || der.n == 0 || der.n > CA_CERTIFICATE_MAX)
		return false;
	memcpy(papers->der[papers->count], der.p, der.n);
	papers->lengths[papers->count++] = der.n;
	return true;
}

static int take_block(const struct ca_pem_block *block, const uint8_t *der, const char *what,
        struct ca_papers *out, char why[CA_WHY_MAX])
{
	struct ca_description d;

	if (find(block->label, SLICE("PRIVATE KEY"))) {
		ca_refuse(why, "%s: a private key is in the same file; keep it elsewhere", what);
		return -EBADMSG;
	}
	if (!slice_equals(block->label, SLICE("CERTIFICATE"))) {
		ca_refuse(why, "%s: a block that is no CERTIFICATE is in it%s", what,
		        find(block->label, SLICE("REQUEST"))
		                ? ": this is the request; give what your CA has made of it"
		                : "");
		return -EBADMSG;
	}
	if (block->n == 0 || ca_describe(slice_of(der, block->n), &d) != 0) {
		ca_refuse(why,
		        "%s: certificate %zu is damaged, or longer than %d bytes; put the file "
		        "back from a copy",
		        what, out->count + 1, CA_CERTIFICATE_MAX);
		return -EBADMSG;
	}
	if (ca_papers_add(out, slice_of(der, block->n)))
		return 0;
	ca_refuse(why, "%s: more than %d certificates", what, CA_PAPERS_MAX);
	return -EBADMSG;
}

int ca_papers_read(struct slice pem, const char *what, struct ca_papers *out, char why[CA_WHY_MAX])
{
	uint8_t der[CA_CERTIFICATE_MAX];
	struct ca_pem_block block;
	int rc;

	out->count = 0;
	if (pem.n > CA_PAPERS_PEM_MAX) {
		ca_refuse(why, "%s: more than %d bytes", what, CA_PAPERS_PEM_MAX);
		return -EBADMSG;
	}
	while ((rc = ca_pem_next(&pem, &block, der, sizeof(der))) == 0)
		if ((rc = take_block(&block, der, what, out, why)) != 0)
			return rc;
	if (rc == -EBADMSG)
		ca_refuse(why, "%s: a PEM block without its end; put the file back from a copy",
		        what);
	else if (out->count == 0)
		ca_refuse(why,
		        "%s: no certificate is in it; it has to be PEM (-----BEGIN "
		        "CERTIFICATE-----)",
		        what);
	return rc == -EBADMSG || out->count == 0 ? -EBADMSG : 0;
}

int ca_describe(struct slice der, struct ca_description *out)
{
	X509 *x509;
	BIO *text;
	char *p;
	long n;

	tls_library_init();
	x509 = tls_x509_parse((const uint8_t *)der.p, der.n);
	*out = (struct ca_description){0};
	if (!x509)
		return -EBADMSG;
	text = BIO_new(BIO_s_mem());
	if (text &&
	        X509_NAME_print_ex(text, X509_get_subject_name(x509), 0, XN_FLAG_RFC2253) >= 0) {
		n = BIO_get_mem_data(text, &p);
		slice_escape(
		        slice_of(p, n > 0 ? (size_t)n : 0), out->subject, sizeof(out->subject));
	}
	BIO_free(text);
	out->from_s = ca_time_s(X509_get0_notBefore(x509));
	out->until_s = ca_time_s(X509_get0_notAfter(x509));
	out->is_self_signed = (X509_get_extension_flags(x509) & EXFLAG_SS) != 0;
	bool good = ca_sha256(der.p, der.n, out->fingerprint) && out->until_s > 0;
	X509_free(x509);
	ERR_clear_error();
	return good ? 0 : -EBADMSG;
}
