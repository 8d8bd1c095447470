// The ajv that our own schemas, and plugins' options, are validated by: at start by validate-value.ts, and when the
// package is built by build/write-validators.ts, whose code must mean the same.
import type { Ajv2020, KeywordCxt } from 'ajv/dist/2020.js'
import { loadAjv2020, loadFormats } from '../mcp/schema/ajv.ts'

/** What our own schemas ask of a text. Built validators have these functions as they are written: they use nothing of this file. */
export const OWN_FORMATS = { uri: (text: string): boolean => URL.canParse(text) }

// Our own schemas need no meta-schema, whose compiling would be a good part of a start.
const OPTIONS = { allErrors: true, verbose: true, strict: false, validateSchema: false }

const CALLABLE = {
  keyword: 'callable',
  code: (cxt: KeywordCxt) => cxt.fail(loadAjv2020()._`typeof ${cxt.data} != "function"`),
}

/** Compiles at start. A plugin's schema may use every format of ajv-formats. */
export function createAjv(): Ajv2020 {
  const { Ajv2020 } = loadAjv2020()
  const ajv = new Ajv2020({ ...OPTIONS, code: { optimize: false } })
  loadFormats().default(ajv)
  return ajv.addFormat('uri', OWN_FORMATS.uri).addKeyword(CALLABLE)
}

/** Compiles to the text of a module, in which `OWN_FORMATS` is to be declared. */
export function createWritingAjv(): Ajv2020 {
  const { _, Ajv2020 } = loadAjv2020()
  const ajv = new Ajv2020({ ...OPTIONS, code: { source: true, esm: true, formats: _`OWN_FORMATS` } })
  return ajv.addFormat('uri', OWN_FORMATS.uri).addKeyword(CALLABLE)
}
