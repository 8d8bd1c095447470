// Tests detection of optional packages and the install command in the error message.
import { join } from 'node:path'
import { expect } from 'chai'
import { StartError } from '../../core/http/errors.ts'
import { assertInstalled, installHint, isInstalled } from '../../core/http/optional-packages.ts'
import { AUTH, startProgram, stopAll } from '../cli/run-cli.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'

after(stopAll)
after(removeFolders)

function refusalOf(names: readonly string[], by: Parameters<typeof assertInstalled>[1]): StartError {
  try {
    assertInstalled(names, by)
  } catch (error) {
    if (error instanceof StartError) return error
    throw error
  }
  throw new Error('nothing was missing')
}

describe('Optional packages', () => {
  it('are detected without loading, including packages that only `import` resolves', () => {
    expect(['prom-client', '@redis/client', 'oidc-provider', 'chai'].filter(name => !isInstalled(name))).to.deep.equal(
      [],
    )
    assertInstalled(['prom-client', '@redis/client'], { what: 'a test' })
  })

  it('are missing if only `require` resolves them through NODE_PATH or ~/.node_modules', async () => {
    const name = 'only-for-require'
    const index = { [`${name}/package.json`]: JSON.stringify({ name, main: 'index.js' }), [`${name}/index.js`]: '' }
    const inside = (place: string) =>
      Object.fromEntries(Object.entries(index).map(([file, text]) => [`${place}/${file}`, text]))
    const folder = await makeFolder({ ...inside('path'), ...inside('home/.node_modules') })
    const env = { NODE_PATH: join(folder, 'path'), HOME: join(folder, 'home') }
    const script = `
      import { createRequire } from 'node:module'
      import { assertInstalled } from ${JSON.stringify(AUTH)}
      createRequire(${JSON.stringify(AUTH)}).resolve('${name}')
      await import('${name}').catch(error => console.log(error.code))
      try { assertInstalled(['${name}'], { what: 'a test' }); console.log('found') } catch (error) { console.log(error.message) }`
    for (const where of ['NODE_PATH', 'HOME'] as const) {
      const given = { NODE_PATH: '', HOME: folder, [where]: env[where] }
      const { stdout, code } = await startProgram(
        [process.execPath, '--input-type=module', '-e', script],
        folder,
        given,
      ).ended
      expect([where, code, stdout.split('\n')[0]]).to.deep.equal([where, 0, 'ERR_MODULE_NOT_FOUND'])
      expect(stdout, where).to.match(/only-for-require, which is an optional package that is not installed; run: npm i/)
    }
  })

  it('are reported with their user and one npm command for all missing packages', () => {
    const told = refusalOf(['prom-client', 'no-such-a', 'no-such-b'], { at: ['plugins', 'x-y'] })
    expect(told.message).to.equal(
      "plugins['x-y']: needs no-such-a and no-such-b, which are optional packages that are not installed; " +
        'run: npm i --save-prod no-such-a no-such-b',
    )
    expect([told.exitCode, told.written.at]).to.deep.equal([2, ['plugins', 'x-y']])
    const { message, exitCode } = refusalOf(['no-such-a'], { what: 'a test' })
    expect(message)
      .to.include('a test needs no-such-a, which is an optional package')
      .and.match(/run: npm i no-such-a$/)
    expect(exitCode).to.equal(1)
  })

  it('are installed in the major version of package.json, without shell special characters', () => {
    expect(installHint(['prom-client', '@redis/client'])).to.match(/^npm i prom-client@\d+ @redis\/client@\d+$/)
    expect(installHint(['prom-client'], '-D')).to.match(/^npm i -D prom-client@\d+$/)
  })
})
