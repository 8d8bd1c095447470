// A real browser for tests: Debian's chromium, driven by playwright-core. Test files of one Mocha worker share it, because its start
// costs more than most of these files. The browser ends with the process.
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Context } from 'mocha'
import { type Browser, chromium, type Page } from 'playwright-core'
import { needsProgram } from './needs-program.ts'

/** Pages of the browser's own address bar and a process in reserve, which need a third of the CPU time of a new context. */
const UNUSED_FEATURES = ['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'SpareRendererForSitePerProcess']
/** Playwright disables these. They are repeated, because the last list replaces others. */
const PLAYWRIGHT_DISABLES = [
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsUpgrades',
  'HttpsFirstBalancedModeAutoEnable',
  'PaintHolding',
  'ThirdPartyStoragePartitioning',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'OptimizationHints',
  'NetworkTimeServiceQuerying',
  'AimEnabled',
  'PreconnectToSearch',
]
const DISABLED = `--disable-features=${[...UNUSED_FEATURES, ...PLAYWRIGHT_DISABLES]}`

let launching: Promise<Browser> | undefined

/** For `before` hooks: starts the browser, or skips the tests if it is missing. `closePages` removes pages and cookies. */
export async function launchBrowser(context: Context): Promise<Browser> {
  needsProgram(context, 'chromium', 'apt-get install chromium')
  const places = (process.env['PATH'] ?? '').split(delimiter).map(folder => join(folder, 'chromium'))
  const executablePath = places.find(place => existsSync(place))
  if (!(await launching?.catch(() => undefined))?.isConnected()) {
    launching = chromium.launch({
      ...(executablePath !== undefined && { executablePath }),
      // Its sandbox does not start for root.
      chromiumSandbox: process.getuid?.() !== 0,
      // Software rendering needs less CPU time in the main process than in a process of its own.
      args: ['--disable-dev-shm-usage', '--disable-gpu', '--in-process-gpu', DISABLED],
    })
  }
  return launching as Promise<Browser>
}

export async function closePages(): Promise<void> {
  const contexts = (await launching?.catch(() => undefined))?.contexts() ?? []
  await Promise.all(contexts.map(context => context.close()))
}

/** Collects console messages, failed requests and script errors from now on. */
export function watchFaults(page: Page): string[] {
  const faults: string[] = []
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(message.text())
  })
  page.on('requestfailed', request => faults.push(`${request.url()}: ${request.failure()?.errorText}`))
  page.on('pageerror', error => faults.push(String(error)))
  return faults
}
