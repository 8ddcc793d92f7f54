/* SPDX-License-Identifier: Apache-2.0 */
/* sts_xml: answers as STS writes them, and everything of XML that they do not have. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "vethguard/wire/sts_xml.h"

#define ID "<AccessKeyId>ASIA1</AccessKeyId>"
#define KEY "<SecretAccessKey>a/b+c=</SecretAccessKey>"
#define SESSION "<SessionToken>FwoG==</SessionToken>"
#define EXPIRES "<Expiration>2026-11-26T15:00:00Z</Expiration>"
#define KEYS "<Credentials>" ID KEY SESSION EXPIRES "</Credentials>"

static const char *const good[] = {
        "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n"
        "  <AssumeRoleResult>\n"
        "  <SourceIdentity>Alice</SourceIdentity>\n"
        "    <AssumedRoleUser>\n"
        "      <Arn>arn:aws:sts::123456789012:assumed-role/demo/TestAR</Arn>\n"
        "      <AssumedRoleId>ARO123EXAMPLE123:TestAR</AssumedRoleId>\n"
        "    </AssumedRoleUser>\n"
        "    <Credentials>\n"
        "      " ID "\n      " KEY "\n      " SESSION "\n      " EXPIRES "\n"
        "    </Credentials>\n"
        "    <PackedPolicySize>6</PackedPolicySize>\n"
        "  </AssumeRoleResult>\n"
        "  <ResponseMetadata>\n"
        "    <RequestId>c6104cbe-af31-11e0-8154-cbc7ccf896c7</RequestId>\n"
        "  </ResponseMetadata>\n"
        "</AssumeRoleResponse>\n",
        "<?xml version=\"1.0\" encoding='utf-8' standalone=\"yes\" ?>\n<a>" KEYS "</a>",
        "<?xml version=\"1.0\"?><Credentials>" SESSION ID KEY "</Credentials>",
        "<a xmlns='x' xmlns:y = \"z\">" KEYS "<b/><c /></a>",
};

static void test_keys(void **state)
{
	struct sts_xml xml;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		const char *why = sts_xml_read(slice_from_string(good[i]), &xml);

		if (i == 3) { /* a blank beside '=' is not how STS writes it */
			assert_non_null(why);
			continue;
		}
		if (why)
			fail_msg("%zu: %s", i, why);
		assert_true(xml.found);
		assert_true(slice_equals(xml.keys[STS_ID], SLICE("ASIA1")));
		assert_true(slice_equals(xml.keys[STS_SECRET], SLICE("a/b+c=")));
		assert_true(slice_equals(xml.keys[STS_TOKEN], SLICE("FwoG==")));
	}
}

static void test_no_keys(void **state)
{
	static const char *const texts[] = {
	        "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error>"
	        "<Type>Sender</Type><Code>AccessDenied</Code><Message>User &quot;a&quot; &amp; "
	        "&lt;b&gt; &apos;c&apos; \xc3\xa4</Message></Error><RequestId>1</RequestId>"
	        "</ErrorResponse>",
	        "<a/>",
	        "<a></a>\n",
	        "<a><Credentials/></a>",
	        "<a><Credentials><Expiration>x</Expiration></Credentials></a>",
	};
	struct sts_xml xml;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		const char *why = sts_xml_read(slice_from_string(texts[i]), &xml);

		if (why || xml.found)
			fail_msg("%s: %s", texts[i], why ? why : "found");
	}
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
	        "",
	        " ",
	        "x",
	        "<a>",
	        "</a>",
	        "<a></b>",
	        "<a/><b/>",
	        "<a></a>x",
	        "x<a/>",
	        "<>",
	        "< a/>",
	        "<a",
	        "<a/",
	        "<a b=\"c\"/>",
	        "<a xmlns=x/>",
	        "<a xmlns=\"x/>",
	        "<a xmlns=\"&amp;\"/>",
	        "<a xmlns=\"<\"/>",
	        "<a xmlnsx=\"y\"/>",
	        "<x:a/>",
	        "<a><b></a></b>",
	        "<!DOCTYPE a><a/>",
	        "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
	        "<a>&b;</a>",
	        "<a>&#65;</a>",
	        "<a>&#x41;</a>",
	        "<a>&</a>",
	        "<a>& amp;</a>",
	        "<a><!-- b --></a>",
	        "<a><![CDATA[b]]></a>",
	        "<a><?b c?></a>",
	        "<?b?><a/>",
	        "<?xml?><a/>x",
	        "<?xml version=\"1.0\" encoding=\"utf-16\"?><a/>",
	        "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><a/>",
	        "<?xml version=\"1.0\"><a/>",
	        " <?xml version=\"1.0\"?><a/>",
	        "<a>\x01</a>",
	        "<a>\x7f</a>",
	        "<a>\xff</a>",
	        "<a>\xc3</a>",
	        "\xef\xbb\xbf<a/>",
	        /* keys that nobody could be sure of */
	        "<a>" ID KEY SESSION "</a>",
	        "<a>" KEYS KEYS "</a>",
	        ID,
	        "<Credentials>" ID KEY "</Credentials>",
	        "<Credentials>" ID SESSION "</Credentials>",
	        "<Credentials>" ID ID KEY SESSION "</Credentials>",
	        "<a>" KEYS SESSION "</a>",
	        "<a>" KEYS "<b>" ID "</b></a>",
	        "<credentials>" ID KEY SESSION "</credentials>",
	        "<Credentials>" ID KEY SESSION "<sessiontoken>x</sessiontoken></Credentials>",
	        "<Credentials><AccessKeyId/>" KEY SESSION "</Credentials>",
	        "<Credentials><AccessKeyId></AccessKeyId>" KEY SESSION "</Credentials>",
	        "<Credentials><AccessKeyId>a<b/></AccessKeyId>" KEY SESSION "</Credentials>",
	        "<Credentials><AccessKeyId><b/>a</AccessKeyId>" KEY SESSION "</Credentials>",
	        "<Credentials><AccessKeyId>a&amp;b</AccessKeyId>" KEY SESSION "</Credentials>",
	        "<Credentials><b>" ID "</b>" KEY SESSION "</Credentials>",
	        "<a>" KEYS "<CREDENTIALS/></a>",
	};
	struct sts_xml xml;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!sts_xml_read(slice_from_string(texts[i]), &xml))
			fail_msg("%s", texts[i]);
	assert_non_null(sts_xml_read(slice_of("<a>\0</a>", 8), &xml));
}

/* A part of a good answer, cut anywhere, is never a good answer. */
static void test_cut(void **state)
{
	struct sts_xml xml;

	(void)state;
	for (size_t n = 0; n < strlen(good[0]) - 1; n++)
		assert_non_null(sts_xml_read(slice_of(good[0], n), &xml));
}

static void test_bounds(void **state)
{
	static char text[16384];
	struct sts_xml xml;
	size_t n;

	(void)state;
	for (size_t depth = STS_XML_DEPTH_MAX; depth < STS_XML_DEPTH_MAX + 2; depth++) {
		n = 0;
		for (size_t i = 0; i < depth; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "<a>");
		for (size_t i = 0; i < depth; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "</a>");
		assert_int_equal(
		        !sts_xml_read(slice_of(text, n), &xml), depth == STS_XML_DEPTH_MAX);
	}
	for (size_t count = STS_XML_ELEMENTS_MAX; count < STS_XML_ELEMENTS_MAX + 2; count++) {
		n = (size_t)snprintf(text, sizeof(text), "<a>");
		for (size_t i = 1; i < count; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "<b/>");
		n += (size_t)snprintf(text + n, sizeof(text) - n, "</a>");
		assert_int_equal(
		        !sts_xml_read(slice_of(text, n), &xml), count == STS_XML_ELEMENTS_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_keys),
	        cmocka_unit_test(test_no_keys),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_cut),
	        cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
