/** The token check of the NestJS peer. */
import {
  type CanActivate,
  type ExecutionContext,
  Injectable,
  UnauthorizedException,
} from '@nestjs/common';
import { merchantOf } from './token.ts';

export type WithMerchant = { headers: { authorization?: string }; merchantId: string };

@Injectable()
export class TokenCheck implements CanActivate {
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<WithMerchant>();
    const merchantId = await merchantOf(request.headers.authorization);
    if (merchantId === undefined) throw new UnauthorizedException();
    request.merchantId = merchantId;
    return true;
  }
}
