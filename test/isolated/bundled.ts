// The test host and the tools of this folder, bundled, because tsx needs seconds of CPU time for each tool process.
import { pathToFileURL } from 'node:url'
import { type BundledFile, bundledFile } from '../support/compiled.ts'

// A tool process gets the options of this process. Bundled tools need no tsx.
process.execArgv = process.execArgv.filter(option => !option.endsWith('=tsx'))

const load = async (file: BundledFile) => import(pathToFileURL(bundledFile(file)).href)
export const { testHost }: typeof import('../../core/testing.ts') = await load('core/testing.ts')
export const { definePlugin }: typeof import('../../core/index.ts') = await load('core/index.ts')

/** The module of the tools. */
export const TOOLS = bundledFile('test/isolated/tools.ts')
