# SPDX-License-Identifier: Apache-2.0
"""The HTTP clients that come with languages: Go net/http, Java HttpClient, Perl LWP, Ruby net/http, PHP curl and streams.

One job for all: an authenticated GET, a POST of 100,000 bytes, a refused DELETE; each program prints the three status
codes, then what the first two said, then the HTTP version where it knows it."""
import json
import os
import re
import unittest

import outside
import support
from outside import Client

URL = "https://api.real.lab.test/whoami"
CUT_OFF = "(?i)reset|closed|EOF|SSL_ERROR_SYSCALL"  # as Go, Java, Perl, Ruby and PHP say it

GO = """package main

import ("bytes"; "fmt"; "io"; "net/http"; "os"; "crypto/tls")

func main() {
	client := http.DefaultClient
	if os.Args[1] == "1" {
		client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment,
			TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}}
	}
	for _, m := range []string{"GET", "POST", "DELETE"} {
		var body io.Reader
		if m == "POST" { body = bytes.NewReader(bytes.Repeat([]byte("x"), 100000)) }
		q, _ := http.NewRequest(m, os.Args[2], body)
		r, err := client.Do(q)
		if err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }
		text, _ := io.ReadAll(r.Body)
		r.Body.Close()
		fmt.Println(r.StatusCode, r.Proto, string(text))
	}
}
"""

JAVA = """import java.net.*;
import java.net.http.*;
import java.net.http.HttpRequest.*;

public class Job {
	public static void main(String[] a) throws Exception {
		HttpClient.Builder b = HttpClient.newBuilder()
			.version(a[0].equals("1") ? HttpClient.Version.HTTP_1_1 : HttpClient.Version.HTTP_2);
		String proxy = System.getenv("HTTPS_PROXY");
		if (proxy != null) {
			URI p = URI.create(proxy);
			b.proxy(ProxySelector.of(new InetSocketAddress(p.getHost(), p.getPort())));
		}
		HttpClient client = b.build();
		for (String m : new String[] {"GET", "POST", "DELETE"}) {
			BodyPublisher body = m.equals("POST") ? BodyPublishers.ofString("x".repeat(100000)) : BodyPublishers.noBody();
			HttpRequest q = HttpRequest.newBuilder(URI.create(a[1])).method(m, body).build();
			HttpResponse<String> r = client.send(q, HttpResponse.BodyHandlers.ofString());
			System.out.println(r.statusCode() + " " + (r.version() == HttpClient.Version.HTTP_2 ? "HTTP/2.0" : "HTTP/1.1") + " " + r.body());
		}
	}
}
"""

PERL = """use LWP::UserAgent; use HTTP::Request;
my $ua = LWP::UserAgent->new(env_proxy => 1, keep_alive => 1);
for my $m (qw(GET POST DELETE)) {
	my $r = $ua->request(HTTP::Request->new($m, $ARGV[0], ['Content-Type' => 'text/plain'], $m eq 'POST' ? 'x' x 100000 : undef));
	die $r->status_line . $r->content if $r->header('Client-Warning');
	print $r->code, ' ', $r->protocol, ' ', $r->content, "\\n";
}
"""

RUBY = """require 'net/http'
uri = URI(ARGV[0])
Net::HTTP.start(uri.host, uri.port, use_ssl: true) do |http|
  %w[GET POST DELETE].each do |m|
    r = http.send_request(m, uri.request_uri, m == 'POST' ? 'x' * 100000 : nil, {})
    puts "#{r.code} HTTP/#{r.http_version} #{r.body}"
  end
end
"""

PHP = """<?php
foreach (['GET', 'POST', 'DELETE'] as $m) {
	$c = curl_init($argv[1]);
	curl_setopt_array($c, [CURLOPT_CUSTOMREQUEST => $m, CURLOPT_RETURNTRANSFER => true, CURLOPT_HTTP_VERSION => CURL_HTTP_VERSION_2TLS]);
	if ($m == 'POST') curl_setopt($c, CURLOPT_POSTFIELDS, str_repeat('x', 100000));
	$text = curl_exec($c);
	if ($text === false) { fwrite(STDERR, curl_error($c)); exit(1); }
	$v = curl_getinfo($c, CURLINFO_HTTP_VERSION) == 3 ? 'HTTP/2.0' : 'HTTP/1.1';
	echo curl_getinfo($c, CURLINFO_RESPONSE_CODE), " $v $text\\n";
}
"""


class Language(Client):
    RULES = ("{to: ['https://api.real.lab.test', 'https://api.one.lab.test'], methods: [GET, POST], credential: api}",)
    CREDENTIALS = {"api": "inject: bearer, env: API_KEY"}

    def job(self, *argv, protocol=outside.TO_CLIENT, host="api.real.lab.test", boxes=None):
        url = URL.replace("api.real.lab.test", host)

        def check(box, word):
            done = box.run(*argv, url, timeout=120)
            self.assert_ok(done)
            got, sent, refused = (line.split(" ", 2) for line in done.out.strip().split("\n"))
            self.assertEqual([got[0], sent[0], refused[0]], ["200", "200", "403"], done)
            self.assertEqual({got[1], sent[1], refused[1]}, {protocol}, done)
            self.assertIn('"authenticated": true', got[2])
            self.assertIn('"body": 100000', sent[2])
            self.assert_denied(box, json.loads(refused[2]))
            self.assert_went(box, outside.TO_UPSTREAM if "real" in host else "HTTP/1.1", authenticated=True)
            self.assertEqual(len(self.seen("request")), 2)
        self.each(check)

    def refuses(self, *argv, shows_reason=False):
        """An unnamed host: a status of 403 over its own TLS, or the proxy's refusal of CONNECT as an error, which has
        some clients show its reason phrase. Without a proxy, a client that takes more than a second from connecting to its hello is
        cut off without an answer, like one that waits for the server to speak first: on a slow machine it is tried again."""
        def check(box, word):
            def explained():
                done = box.run(*argv, "https://evil.lab.test/x", timeout=120)
                if re.search("403|Forbidden", done.out + done.err):
                    return done
                self.assertEqual(word, "transparent", done)
                return self.assertRegex(done.out + done.err, CUT_OFF, done)
            done = support.wait_until(explained, 20 * support.SLOW)
            self.assertTrue(done, "no explanation came")
            if shows_reason:
                self.assertIn("Not allowed by the sandbox's network policy", done.out + done.err)
            self.assertEqual(self.seen("evil") + self.seen("request"), [])
            self.assertIsNotNone(box.event(action_id=2, status_code=outside.BY_POLICY.__contains__), done)
        self.each(check)


@unittest.skipUnless(*outside.need("/usr/bin/go"))
class Go(Language):
    @classmethod
    def prepare(cls):
        support.LAB.write("job.go", GO)
        cls.program = support.LAB.path("job-go")
        env = dict(os.environ, HOME=support.LAB.path("home"), GOFLAGS="-mod=mod", GO111MODULE="off", GOTOOLCHAIN="local",
                   GOCACHE=support.LAB.path("go-cache"), CGO_ENABLED="0")
        support.sh("/usr/bin/go", "build", "-o", cls.program, support.LAB.path("job.go"), env=env)

    def test_http1(self):
        self.job(self.program, "1", protocol="HTTP/1.1")

    def test_http2(self):
        self.job(self.program, "2")

    def test_http2_to_an_origin_of_http1(self):
        self.job(self.program, "2", host="api.one.lab.test")

    def test_refused(self):
        self.refuses(self.program, "2", shows_reason=True)


@unittest.skipUnless(*outside.need("/usr/bin/java"))
class Java(Language):
    @classmethod
    def prepare(cls):
        cls.program = support.LAB.write("Job.java", JAVA)

    def test_http1(self):
        self.job("java", self.program, "1", protocol="HTTP/1.1")

    def test_http2(self):
        self.job("java", self.program, "2")

    def test_refused(self):
        self.refuses("java", self.program, "2")


@unittest.skipUnless(*outside.need("/usr/share/perl5/LWP/Protocol/https.pm"))
class Perl(Language):
    @classmethod
    def prepare(cls):
        cls.program = support.LAB.write("job.pl", PERL)

    def test_lwp(self):
        self.job("/usr/bin/perl", self.program, protocol="HTTP/1.1")

    def test_refused(self):
        self.refuses("/usr/bin/perl", self.program)


@unittest.skipUnless(*outside.need("/usr/bin/ruby"))
class Ruby(Language):
    @classmethod
    def prepare(cls):
        cls.program = support.LAB.write("job.rb", RUBY)

    def test_net_http(self):
        self.job("/usr/bin/ruby", self.program, protocol="HTTP/1.1")

    def test_refused(self):
        self.refuses("/usr/bin/ruby", self.program)


@unittest.skipUnless(*outside.need("/usr/bin/php"))
class Php(Language):
    @classmethod
    def prepare(cls):
        cls.program = support.LAB.write("job.php", PHP)

    def test_curl(self):
        self.job("/usr/bin/php", self.program)

    def test_refused(self):
        self.refuses("/usr/bin/php", self.program)


del Client, Language  # base classes, not tests
