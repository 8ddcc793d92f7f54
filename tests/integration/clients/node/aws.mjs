// SPDX-License-Identifier: Apache-2.0
// The AWS SDK for JavaScript, with any key: `node aws.mjs ENDPOINT` prints what it got, as one line of JSON.
import { Readable } from "node:stream";
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { DeleteObjectCommand, GetObjectCommand, HeadObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";

const endpoint = process.argv[2];
const common = { endpoint, region: "us-east-1", maxAttempts: 1 };
const s3 = new S3Client({ ...common, forcePathStyle: true });
const where = { Bucket: "bucket", Key: "a key+with (odd) signs/ä" };
const body = Buffer.alloc(300000, "js ");
const got = {};

await s3.send(new PutObjectCommand({ ...where, Body: body, Metadata: { a: "b  c" } }));
got.whole = Buffer.from(await (await s3.send(new GetObjectCommand(where))).Body.transformToByteArray()).equals(body);
got.range = await (await s3.send(new GetObjectCommand({ ...where, Range: "bytes=0-3" }))).Body.transformToString();
// A stream: signed in chunks or with a trailer, as the SDK likes it.
await s3.send(new PutObjectCommand({ ...where, Body: Readable.from([body, body]), ContentLength: 2 * body.length, ChecksumAlgorithm: "SHA256" }));
got.length = (await s3.send(new HeadObjectCommand(where))).ContentLength;
got.listed = (await s3.send(new ListObjectsV2Command({ Bucket: "bucket", Prefix: "a key" }))).Contents?.length;
const url = await getSignedUrl(s3, new GetObjectCommand({ ...where, ResponseContentType: "text/plain" }), { expiresIn: 60 });
got.presigned = (await (await fetch(url)).arrayBuffer()).byteLength;
await s3.send(new DeleteObjectCommand(where));
got.gone = await s3.send(new GetObjectCommand(where)).catch(e => e.name);
got.tables = (await new DynamoDBClient(common).send(new ListTablesCommand({}))).TableNames;
got.other = await new S3Client({ ...common, region: "eu-west-9", forcePathStyle: true }).send(new ListObjectsV2Command({ Bucket: "bucket" })).catch(e => e.$metadata.httpStatusCode);
console.log(JSON.stringify(got));
