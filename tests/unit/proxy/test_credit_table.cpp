#include <gtest/gtest.h>

#include "daemon/fabric/factory.hpp"
#include "daemon/fabric/loopback.hpp"
#include "daemon/proxy/credit_table.hpp"

namespace railhead::daemon::rail {
namespace {

class CreditTableTest : public testing::Test {
 protected:
  // What a peer does, by the NIC.
  void write(std::uint16_t number, const ipc::CreditWord& word) {
    source_.at(0) = word;
    static_cast<void>(far_->post_write({.peer = peer_,
                                        .local = region_,
                                        .bytes = sizeof(word),
                                        .remote = table_->remote(),
                                        .remote_offset = number * sizeof(word)}));
    std::array<fabric::Event, 8> events;
    while (far_->poll(events) > 0) {
    }
  }
  void SetUp() override {
    const auto hub = std::make_shared<fabric::LoopbackHub>();
    const fabric::FabricConfig config{.provider = "loopback", .hub = hub};
    near_ = *fabric::make_fabric(config);
    far_ = *fabric::make_fabric(config);
    fabric::Token token{};
    token[0] = 1;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    ASSERT_TRUE(near_->expect_peer(token, deadline));
    peer_ = *far_->open_peer(near_->address(), token, deadline);
    region_ = *far_->register_memory(source_.data(), sizeof(source_));
    table_ = std::make_unique<CreditTable>(std::move(*CreditTable::create(*near_, 8)));
  }

  std::array<ipc::CreditWord, 1> source_{};
  std::unique_ptr<fabric::Fabric> near_;
  std::unique_ptr<fabric::Fabric> far_;
  fabric::PeerId peer_{};
  fabric::RegionId region_{};
  std::unique_ptr<CreditTable> table_;
};

TEST_F(CreditTableTest, IsEmptyAtFirst) {
  EXPECT_FALSE(table_->read({3, 0}));
}

TEST_F(CreditTableTest, ReadsWhatThePeerWrote) {
  write(3, make_credit(0, 17));
  EXPECT_EQ(table_->read({3, 0}), 17U);
  EXPECT_FALSE(table_->read({2, 0}));
}

TEST_F(CreditTableTest, ATornWordIsNoCredit) {
  write(3, {5, ~std::uint64_t{4}});
  EXPECT_FALSE(table_->read({3, 0}));
}

TEST_F(CreditTableTest, ACreditOfTheNumbersLastUseIsNone) {
  write(3, make_credit(62, 9));
  EXPECT_EQ(table_->read({3, 62}), 9U);
  EXPECT_FALSE(table_->read({3, 63}));
}

}  // namespace
}  // namespace railhead::daemon::rail
