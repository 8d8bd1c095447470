// A worker thread that validates results against a server's output schema, whose patterns can run indefinitely.
import { parentPort, workerData } from 'node:worker_threads'
import type { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv'
import type { SchemaCheck } from '../call.ts'

type Schema = Parameters<AjvJsonSchemaValidator['getValidator']>[0]

const { AjvJsonSchemaValidator: Validator } = await import('@modelcontextprotocol/client/validators/ajv')
const { schema, value } = workerData as SchemaCheck
const { valid, errorMessage } = new Validator().getValidator(schema as Schema)(value)
parentPort?.postMessage(valid ? undefined : errorMessage)
