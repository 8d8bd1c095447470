// A thread that validates a result against the output schema of a server: its patterns can run without end.
import { parentPort, workerData } from 'node:worker_threads'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv'
import type { SchemaCheck } from '../check-result.ts'

const { schema, value } = workerData as SchemaCheck
type Schema = Parameters<AjvJsonSchemaValidator['getValidator']>[0]
const { valid, errorMessage } = new AjvJsonSchemaValidator().getValidator(schema as Schema)(value)
parentPort?.postMessage(valid ? undefined : errorMessage)
