// NestJS CQRS on Fastify. The compiler writes the injected classes beside the constructors, so they
// are imported as values.
import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import {
  BadRequestException,
  Body,
  Controller,
  Get,
  Module,
  NotFoundException,
  Param,
  Post,
  Req,
  UseGuards,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  CommandBus,
  CommandHandler,
  CqrsModule,
  EventBus,
  EventsHandler,
  QueryBus,
  QueryHandler,
} from '@nestjs/cqrs';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { approved, callProvider, newPayment, PaymentRequest, responseOf } from './contract.ts';
import { PaymentCreated, PaymentStore, PaymentSucceeded } from './nest-store.ts';
import { TokenCheck, type WithMerchant } from './nest-token.ts';

class CreatePayment {
  constructor(
    readonly merchantId: string,
    readonly request: PaymentRequest,
  ) {}
}
class GetPayment {
  constructor(
    readonly merchantId: string,
    readonly paymentId: string,
  ) {}
}

@CommandHandler(CreatePayment)
class CreatePaymentHandler {
  constructor(
    private readonly store: PaymentStore,
    private readonly events: EventBus,
  ) {}
  async execute({ merchantId, request }: CreatePayment) {
    const payment = newPayment(`pay_${randomUUID()}`, merchantId, request);
    const created = new PaymentCreated(payment);
    this.store.append(payment.paymentId, 0, created);
    this.events.publish(created);
    await callProvider(payment.paymentId);
    const succeeded = new PaymentSucceeded(approved(payment));
    this.store.append(payment.paymentId, 1, succeeded);
    this.events.publish(succeeded);
    return responseOf(succeeded.payment);
  }
}

@EventsHandler(PaymentCreated, PaymentSucceeded)
class PaymentProjection {
  constructor(private readonly store: PaymentStore) {}
  handle({ payment }: PaymentCreated | PaymentSucceeded) {
    this.store.save(payment);
  }
}

@QueryHandler(GetPayment)
class GetPaymentHandler {
  constructor(private readonly store: PaymentStore) {}
  async execute({ merchantId, paymentId }: GetPayment) {
    const payment = this.store.find(paymentId);
    return payment?.merchantId === merchantId ? responseOf(payment) : undefined;
  }
}

@Controller('api/v1/payments')
@UseGuards(TokenCheck)
class PaymentsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly queries: QueryBus,
  ) {}
  @Post()
  create(@Req() { merchantId }: WithMerchant, @Body() body: unknown) {
    const parsed = PaymentRequest.safeParse(body);
    if (!parsed.success) throw new BadRequestException(parsed.error.issues);
    return this.commands.execute(new CreatePayment(merchantId, parsed.data));
  }
  @Get(':id')
  async get(@Req() { merchantId }: WithMerchant, @Param('id') id: string) {
    const payment = await this.queries.execute(new GetPayment(merchantId, id));
    if (payment === undefined) throw new NotFoundException();
    return payment;
  }
}

@Controller('ready')
class ReadyController {
  @Get()
  ready() {
    return { ok: true };
  }
}

@Module({
  imports: [CqrsModule],
  controllers: [PaymentsController, ReadyController],
  providers: [PaymentStore, CreatePaymentHandler, PaymentProjection, GetPaymentHandler],
})
class AppModule {}

const app = await NestFactory.create(AppModule, new FastifyAdapter(), { logger: ['error'] });
await app.listen(Number(process.env.PORT), '127.0.0.1');
