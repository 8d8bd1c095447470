// The test host and the tools of this folder, bundled, because tsx needs seconds of CPU time for each tool process.
import { pathToFileURL } from 'node:url'
import { bundledFile } from '../support/compiled.ts'

// A tool process gets the options of this process. Bundled tools need no tsx.
process.execArgv = process.execArgv.filter(option => !option.endsWith('=tsx'))

const url = pathToFileURL(bundledFile('core/testing.ts')).href
export const { testHost }: typeof import('../../core/testing.ts') = await import(url)

/** The module of the tools. */
export const TOOLS = bundledFile('test/isolated/tools.ts')
