// Tests the check for public addresses of client metadata documents.
import { expect } from 'chai'
import { isPublic } from '../../../plugins/auth-bridge/clients/public-address.ts'

describe('auth-bridge: public address check', () => {
  for (const host of [
    '93.184.215.14',
    '8.8.8.8',
    '1.1.1.1',
    '172.15.255.255',
    '172.32.0.1',
    '100.63.255.255',
    '223.255.255.255',
  ])
    it(`accepts public IPv4 address ${host}`, async () => expect(await isPublic(`https://${host}/x`)).to.equal(true))
  for (const host of ['[2606:4700:4700::1111]', '[2001:4860:4860::8888]', '[2a00:1450::1]', '[3ffe::1]'])
    it(`accepts public IPv6 address ${host}`, async () => expect(await isPublic(`https://${host}/x`)).to.equal(true))
  for (const host of [
    '127.0.0.1',
    '10.0.0.1',
    '224.0.0.1',
    '[::ffff:8.8.8.8]',
    '[::1]',
    '[fec0::1]',
    '[2001:db8::1]',
    'localhost',
    'x.localhost.',
  ])
    it(`rejects ${host}`, async () => expect(await isPublic(`https://${host}/x`)).to.equal(false))
  it('rejects an unresolvable name and an invalid URL', async () => {
    expect([await isPublic('https://nobody.invalid/x'), await isPublic('x')]).to.deep.equal([false, false])
  })
})
